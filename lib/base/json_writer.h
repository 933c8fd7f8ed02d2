#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool {

/// Streaming JSON writer: fields appear in call order, and a listing of 100,000 tensors is never
/// held in memory. Invalid UTF-8 (in paths) becomes U+FFFD.
class JsonWriter {
 public:
  using Sink = std::function<void(std::string_view)>;
  explicit JsonWriter(Sink sink) : sink_(std::move(sink)) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(i64 number);
  JsonWriter& value(int number) { return value(static_cast<i64>(number)); }
  JsonWriter& value(double number);
  JsonWriter& value(bool truth);
  JsonWriter& null();
  /// Appends text that is already JSON.
  JsonWriter& raw(std::string_view json);

  template <class Value>
  JsonWriter& field(std::string_view name, const Value& content) {
    return key(name).value(content);
  }
  template <class List>
  JsonWriter& list(std::string_view name, const List& items) {
    key(name).begin_array();
    for (const auto& item : items) value(item);
    return end_array();
  }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  Sink sink_;
  std::vector<bool> filled_;  ///< per open bracket: has an element
  bool after_key_ = false;
};

}  // namespace shardtool
