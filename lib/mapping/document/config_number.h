#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mapping/document/config.h"
#include "lib/mapping/document/json_value.h"

namespace shardtool::mapping {

/// That config.json has this word at a path.
struct Condition {
  std::string config;
  std::string is;
};

/// A number of config.json with what counts where the config does not say, or a literal.
struct Number {
  std::vector<std::string>
      config;        ///< paths, of which the first that is there counts; none: a literal
  double value = 0;  ///< the literal or the default
  std::optional<Condition> when = {};  ///< the default counts, too, where this does not hold
  double times = 1;                    ///< of what the config says
};

/// The number that the config says at the first of its paths that is there, so many times, or its
/// default. Throws kConfig for anything but a number there.
double value_of(const Number& number, const ModelConfig& config);

/// The number as the layer has it: at a path of which the config has a list it says one for each.
Number of_layer(const Number& number, i64 layer);

/// The text of a number, the same for 7 and 7.0.
std::string allowed_number(double value);

/// What config.json says at a path, as JSON text, numbers as allowed_number writes them: "null"
/// where it says nothing.
std::string said_at(std::string_view path, const ModelConfig& config);

/// One string, or a list of them. Throws kMappingSchema with the place, as all of these.
std::vector<std::string> decode_paths(const JsonValue& value);
/// A number, {"config": path, "default": number, "times": number}, or the name of one.
Number decode_number(const JsonValue& value, const std::map<std::string, Number>& named);
/// Words that config.json may say, as said_at gives them.
std::vector<std::string> decode_allowed(const JsonValue& value);

}  // namespace shardtool::mapping
