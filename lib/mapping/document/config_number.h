#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mapping/document/config.h"
#include "lib/mapping/document/json_value.h"

namespace shardtool::mapping {

/// Holds if config.json has this string at a path.
struct Condition {
  std::string config;
  std::string is;
};

/// A literal, or a number of config.json with a default.
struct Number {
  std::vector<std::string> config;     ///< the first path that is present counts; empty: a literal
  double value = 0;                    ///< the literal or the default
  std::optional<Condition> when = {};  ///< if given and false, the default counts
  double times = 1;                    ///< factor for the number of the config
};

/// Returns `times` the number at the first path that is present, or the default. Throws kConfig if
/// the value there is no number.
double value_of(const Number& number, const ModelConfig& config);

/// The number for one layer: the element of that layer, if config.json has a list at the path.
Number of_layer(const Number& number, i64 layer);

/// Formats a number; 7 and 7.0 give the same text.
std::string allowed_number(double value);

/// Returns the value at a path as JSON text, with numbers formatted by allowed_number; "null" if it
/// is absent.
std::string said_at(std::string_view path, const ModelConfig& config);

/// Decodes one string or a list of strings. All decoders here throw kMappingSchema with the place.
std::vector<std::string> decode_paths(const JsonValue& value);
/// Decodes a number, {"config": path, "default": number, "times": number}, or the name of a number.
Number decode_number(const JsonValue& value, const std::map<std::string, Number>& named);
/// Decodes values that config.json may have, in the form of said_at.
std::vector<std::string> decode_allowed(const JsonValue& value);

}  // namespace shardtool::mapping
