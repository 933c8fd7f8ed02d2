#pragma once

#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/base/name_map.h"

namespace shardtool::mapping {

/// The position of every value and key of a JSON text, by JSON pointer. Built in one pass, because
/// a mapping keeps the place of most of its values.
class PlaceIndex {
 public:
  /// Requires text that is strict JSON.
  PlaceIndex(std::string_view text, std::string file);

  Place value(const std::string& pointer) const { return find(pointer, &Offsets::value); }
  Place key(const std::string& pointer) const { return find(pointer, &Offsets::key); }

 private:
  /// Offsets in the text; an element of a list has its own as its key's.
  struct Offsets {
    size_t key = 0;
    size_t value = 0;
  };
  Place find(const std::string& pointer, size_t Offsets::*which) const;

  std::string file_;
  std::vector<size_t> line_starts_;
  NameMap<Offsets> offsets_;
};

/// A JSON value with its place. Every accessor throws kMappingSchema with place, found and expected
/// if the value has another type.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& value, std::string pointer, const PlaceIndex& places)
      : value_(&value), pointer_(std::move(pointer)), places_(&places) {}

  Place place() const { return places_->value(pointer_); }
  bool is_null() const { return value_->is_null(); }
  bool is_text() const { return value_->is_string(); }
  bool is_number() const { return value_->is_number(); }
  bool is_array() const { return value_->is_array(); }
  bool is_object() const { return value_->is_object(); }
  bool has(const std::string& key) const { return value_->is_object() && value_->contains(key); }

  /// Name for messages: "heads" or "/axes/heads".
  std::string name() const;
  std::string text() const;
  /// Returns a non-empty string.
  std::string nonempty_text() const;
  /// Returns the JSON text of null, a boolean, an integer or a string.
  std::string scalar() const;
  /// Returns a string of letters, digits and underscores that does not begin with a digit.
  std::string identifier() const;
  /// Returns an integer; 1.0 and 1e0 are not integers.
  i64 integer(i64 min = std::numeric_limits<i64>::min()) const;
  /// Returns any number, also a fraction.
  double number() const;
  bool boolean() const;
  std::vector<JsonValue> elements(size_t at_least = 0) const;
  /// Returns the members of an object that may have any keys.
  std::vector<std::pair<std::string, JsonValue>> members() const;
  /// Returns the enumerator that the string names.
  template <class E>
  E one_of(std::initializer_list<std::pair<std::string_view, E>> names) const {
    const std::string word = text();
    std::vector<std::string> known;
    for (const auto& [name, value] : names) {
      if (name == word) return value;
      known.emplace_back(name);
    }
    refuse_word(word, known);
  }

  struct Field {
    std::string_view key;
    std::function<void(const JsonValue&)> read;
    bool required = false;
  };
  /// Reads an object that must not have other keys than these.
  void object(const std::vector<Field>& fields) const;
  /// Reads the object that is a whole file: as object(), and it may have kSchemaKey.
  void document(std::vector<Field> fields) const;

  [[noreturn]] void refuse(const std::string& expected) const;
  [[noreturn]] void refuse_word(const std::string& word,
                                const std::vector<std::string>& known) const;
  Error error(ErrorCode code, const std::string& message) const;
  /// Returns the result of `parse`. Adds this value's place to an error that has none.
  template <class Parse>
  auto located(Parse parse) const {
    try {
      return parse();
    } catch (Error& e) {
      if (!e.place()) e.at(place());
      throw;
    }
  }

 private:
  [[noreturn]] void refuse_key(const std::string& key, const std::vector<Field>& fields) const;
  JsonValue member(const std::string& key) const;

  const nlohmann::json* value_;
  std::string pointer_;
  const PlaceIndex* places_;
};

}  // namespace shardtool::mapping
