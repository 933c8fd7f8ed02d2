#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/name_map.h"

namespace shardtool::mapping {

/// Returns the name with every dotted part that is a number replaced by *. The result is a glob
/// that matches all tensors of the same kind.
std::string name_form(std::string_view name);
/// Returns true for a dotted part of digits alone.
bool is_number(std::string_view part);
/// Returns true if some dotted part is a number.
bool has_number(std::string_view name);

/// A name and the numbers in it: its dotted parts of 1 to 18 digits.
class NumberedName {
 public:
  NumberedName() = default;
  explicit NumberedName(std::string_view name) { assign(name); }
  /// Assigns NumberedName(name), reusing allocated memory.
  void assign(std::string_view name);

  /// The name with every number replaced by the same placeholder of several digits. Names that
  /// differ only in numbers have the same form, and the form is itself one of them.
  const std::string& form() const { return form_; }
  /// The numbers in order, as views into the name.
  const std::vector<std::string_view>& numbers() const { return numbers_; }
  /// Returns the index of the number at [begin, begin + size) of the form, or nullopt if no number
  /// is exactly there.
  std::optional<size_t> number_at(size_t begin, size_t size) const;

 private:
  friend class NameTemplate;
  std::string form_;
  std::vector<std::string_view> numbers_;
  std::vector<size_t> begins_;  ///< start of each number in form_
};

/// A text made of pieces of a name. It can be rebuilt from any other name of the same form.
class NameTemplate {
 public:
  void append(std::string_view literal);
  /// Appends form[begin, begin + size) of a name. Returns false if the range cuts through a number:
  /// in other names of the form the cut may be elsewhere.
  bool append_piece(const NumberedName& name, size_t begin, size_t size);
  std::string fill(const NumberedName& name) const;

 private:
  struct Piece {
    std::string literal;
    std::optional<size_t> number;  ///< follows the literal
  };
  std::vector<Piece> pieces_;
};

/// Caches one value per form of names. Models have few forms. If a checkpoint has more than the
/// cache holds, values for further forms are computed at every call.
template <class Found>
class ByForm {
 public:
  /// Returns the cached value of the name's form, or calls `find`. Valid until the next call.
  template <class Find>
  const Found& of(const std::string& form, Find find) {
    constexpr size_t kMostKept = 1 << 12;
    if (const auto known = kept_.find(form); known != kept_.end()) return known->second;
    if (kept_.size() < kMostKept) return kept_.emplace(form, find()).first->second;
    return last_ = find();
  }

 private:
  NameMap<Found> kept_;
  Found last_ = {};
};

}  // namespace shardtool::mapping
