#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::cli {

/// Value of a JSON document with its place in it, so that a page can say where a number is from.
/// The document must outlive it. Members throw kInternal for a value of another type.
class JsonView {
 public:
  explicit JsonView(const nlohmann::ordered_json& value, std::string pointer = "")
      : value_(&value), pointer_(std::move(pointer)) {}

  /// JSON Pointer (RFC 6901) of the value.
  const std::string& pointer() const { return pointer_; }
  bool has(std::string_view key) const;
  JsonView operator[](std::string_view key) const;
  JsonView operator[](size_t index) const;
  size_t size() const;
  bool empty() const { return size() == 0; }
  std::vector<JsonView> elements() const;
  std::vector<std::string> keys() const;  ///< of an object, in its order

  bool is_null() const;
  i64 count() const;
  double number() const;
  bool truth() const;
  std::string text() const;
  /// JSON text of the value, for comparisons and for numbers as they stand in the document.
  std::string json() const;

 private:
  const nlohmann::ordered_json* value_;
  std::string pointer_;
};

}  // namespace shardtool::cli
