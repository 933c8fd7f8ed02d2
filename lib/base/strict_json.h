#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/json_reader.h"

namespace shardtool {

/// A JSON document as a tree, with the places of its values for messages.
///
/// Integers are exact and 64-bit (is_number_integer()). A number with a fraction or an exponent is
/// a double (is_number_float()), even 1.0.
class JsonDocument {
 public:
  nlohmann::json value;

  /// Line and column of the value at this JSON pointer (RFC 6901, "" is the root), or of the
  /// nearest enclosing value if there is no such value. O(text): meant for errors.
  Place place(const std::string& pointer) const;

 private:
  friend JsonDocument parse_strict_json(std::string_view, const std::string&, ErrorCode, int,
                                        JsonNumbers);

  std::string text_;
  std::string file_;
  JsonNumbers numbers_ = JsonNumbers::kFinite;
};

/// Parses strict JSON (see JsonReader). Refuses duplicate keys in an object, integers beyond 64
/// bits and numbers beyond double. Throws Error of this code with place, found and expected. `file`
/// is for messages. Of kPython, an integer beyond 64 bits becomes a double, and a word for a number
/// the object that newer versions of the transformers library write: {"__float__": "Infinity"}.
JsonDocument parse_strict_json(std::string_view text, const std::string& file,
                               ErrorCode code_for_errors, int max_depth,
                               JsonNumbers numbers = JsonNumbers::kFinite);

}  // namespace shardtool
