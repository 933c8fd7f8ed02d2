#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/mapping/document/decode.h"
#include "lib/mapping/document/glob_matcher.h"

namespace shardtool::mapping {
namespace {

void check_numbers(const JsonValue& value, const DropRule& rule) {
  const size_t wildcards = rule.match.wildcards().size();
  for (const auto& [number, set] : rule.where) {
    if (position_of_number(rule.match, number) < wildcards) continue;
    throw value
        .error(ErrorCode::kUnknownName,
               fmt::format("\"where\" names the capture '{}', which the pattern '{}' does not have",
                           quote_for_message(number, 60), quote_for_message(rule.match.text())))
        .help(fmt::format("write <{}> where the number stands in the name",
                          quote_for_message(number, 60)));
  }
}

}  // namespace

DropRule decode_drop(const JsonValue& value, const LayerSets& sets) {
  if (value.is_text()) return {decode_glob(value), {}};
  DropRule rule;
  value.object({
      {"match", [&](const JsonValue& v) { rule.match = decode_glob(v); }, true},
      {"where", [&](const JsonValue& v) { rule.where = decode_where(v, sets); }, true},
  });
  check_numbers(value, rule);
  return rule;
}

}  // namespace shardtool::mapping
