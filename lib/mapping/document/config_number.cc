#include "lib/mapping/document/config_number.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::mapping {
namespace {

/// Returns true for {"__float__": "Infinity"}, which the transformers library writes because JSON
/// has no infinity.
bool is_infinity(const nlohmann::json& value) {
  return value.is_object() && value.size() == 1 && value.contains("__float__") &&
         value["__float__"] == "Infinity";
}

}  // namespace

double value_of(const Number& number, const ModelConfig& config) {
  if (number.when && config.text(number.when->config) != number.when->is) return number.value;
  for (const std::string& path : number.config) {
    const nlohmann::json* value = config.find(path);
    if (value == nullptr || value->is_null()) continue;
    if (value->is_number()) return number.times * value->get<double>();
    if (is_infinity(*value)) return std::numeric_limits<double>::infinity();
    throw Error(ErrorCode::kConfig, fmt::format("'{}' in {} is not a number", path, config.file()))
        .note("found", quote_for_message(value->dump(), 60));
  }
  return number.value;
}

Number of_layer(const Number& number, i64 layer) {
  Number one = number;
  one.config.clear();
  for (const std::string& path : number.config) {
    one.config.push_back(fmt::format("{}[{}]", path, layer));
    one.config.push_back(path);
  }
  return one;
}

std::string allowed_number(double value) {
  return fmt::format("{}", value);
}

std::string said_at(std::string_view path, const ModelConfig& config) {
  const nlohmann::json* value = config.find(path);
  if (value == nullptr) return "null";
  return value->is_number() ? allowed_number(value->get<double>()) : value->dump();
}

std::vector<std::string> decode_paths(const JsonValue& value) {
  if (value.is_text()) return {value.nonempty_text()};
  std::vector<std::string> paths;
  for (const JsonValue& path : value.elements(1)) paths.push_back(path.nonempty_text());
  return paths;
}

Number decode_number(const JsonValue& value, const std::map<std::string, Number>& named) {
  if (value.is_number()) return {{}, value.number()};
  if (value.is_text()) {
    const auto found = named.find(value.text());
    if (found == named.end()) value.refuse("a number or the name of one of the \"numbers\"");
    return found->second;
  }
  Number number;
  const auto condition = [&number](const JsonValue& v) {
    Condition& when = number.when.emplace();
    v.object({{"config", [&](const JsonValue& path) { when.config = path.nonempty_text(); }, true},
              {"is", [&](const JsonValue& word) { when.is = word.nonempty_text(); }, true}});
  };
  value.object(
      {{"config", [&number](const JsonValue& v) { number.config = decode_paths(v); }, true},
       {"default", [&](const JsonValue& v) { number.value = v.number(); }, true},
       {"when", condition},
       {"times", [&](const JsonValue& v) { number.times = v.number(); }}});
  return number;
}

std::vector<std::string> decode_allowed(const JsonValue& value) {
  std::vector<std::string> allowed;
  for (const JsonValue& one : value.elements(1)) {
    allowed.push_back(one.is_number() ? allowed_number(one.number()) : one.scalar());
  }
  return allowed;
}

}  // namespace shardtool::mapping
