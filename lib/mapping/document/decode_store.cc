#include <fmt/format.h>

#include <algorithm>

#include "lib/mapping/document/decode.h"
#include "lib/mapping/document/identifier.h"

namespace shardtool::mapping {
namespace {

StoredConstant decode_constant(const JsonValue& value) {
  StoredConstant constant;
  value.object({
      {"dtype", [&](const JsonValue& v) { constant.dtype = decode_dtypes(v).front(); }, true},
      {"shape",
       [&](const JsonValue& v) {
         for (const JsonValue& extent : v.elements()) constant.shape.push_back(extent.integer(0));
       }},
      {"value", [&](const JsonValue& v) { constant.value = v.number(); }, true},
  });
  constexpr i64 kMostElements = 1 << 18;
  const auto elements = element_count(constant.shape);
  const bool is_float = constant.dtype == Dtype::kF32 || constant.dtype == Dtype::kBF16;
  if (is_float && elements && *elements <= kMostElements) return constant;
  value.refuse("an F32 or BF16 constant of at most 262144 elements");
}

bool is_number(const GlobToken& token, const std::string& name) {
  return token.kind == GlobToken::Kind::kNumber && token.text == name;
}

/// Checks that the texts of the wildcards in "of" give the text of "name".
void check_wildcards(const JsonValue& value, const StoreRule& rule) {
  const std::vector<GlobToken> of = rule.of.front().wildcards();
  const auto refuse = [&](const Glob& first, const Glob& second, const std::string& help) {
    throw value
        .error(ErrorCode::kMappingSchema,
               fmt::format("the wildcards of '{}' and '{}' differ", first.text(), second.text()))
        .help(help);
  };
  for (const Glob& glob : rule.of) {
    if (glob.wildcards() == of) continue;
    refuse(rule.of.front(), glob, "all globs of \"of\" need the same wildcards in the same order");
  }
  if (rule.same && rule.same->wildcards() != of) {
    refuse(rule.of.front(), *rule.same, "\"same\" and \"of\" need the same wildcards");
  }
  std::vector<GlobToken> named = of;
  if (!rule.stack.empty()) {
    const auto removed =
        std::erase_if(named, [&](const GlobToken& token) { return is_number(token, rule.stack); });
    if (removed == 0) {
      throw value.error(ErrorCode::kMappingSchema,
                        fmt::format("\"stack\" names <{}>, which \"of\" lacks", rule.stack));
    }
  }
  if (rule.name.wildcards() == named) return;
  refuse(
      rule.name, rule.of.front(),
      "\"name\" and \"of\" need the same wildcards in the same order; only \"of\" has the number "
      "that \"stack\" names");
}

}  // namespace

StoreRule decode_store_rule(const JsonValue& value) {
  StoreRule rule;
  rule.place = value.place();
  value.object({
      {"name", [&](const JsonValue& v) { rule.name = decode_glob(v); }, true},
      {"of", [&](const JsonValue& v) { rule.of = decode_globs(v); }, true},
      {"stack", [&](const JsonValue& v) { rule.stack = v.identifier(); }},
      {"at",
       [&](const JsonValue& v) {
         for (const auto& [axis, number] : v.members()) {
           if (!is_identifier(axis)) number.refuse("the name of an axis as its key");
           rule.at[axis] = number.integer();
         }
       }},
      {"interleave", [&](const JsonValue& v) { rule.interleave = v.identifier(); }},
      {"join", [&](const JsonValue& v) { rule.join = static_cast<size_t>(v.integer(1)); }},
      {"same", [&](const JsonValue& v) { rule.same = decode_glob(v); }},
      {"constant", [&](const JsonValue& v) { rule.constant = decode_constant(v); }},
      {"config", [&](const JsonValue& v) { rule.config = decode_conditions(v); }},
  });
  if (rule.of.empty()) value.refuse("a rule with at least one glob in \"of\"");
  if (rule.constant && (rule.of.size() != 1 || !rule.stack.empty())) {
    value.refuse("a rule with one glob in \"of\" and no \"stack\", since it has a constant");
  }
  const bool renames = rule.of.size() == 1 && rule.stack.empty() && !rule.constant;
  if (!renames && (rule.same || !rule.interleave.empty() || rule.join > 0 || !rule.at.empty())) {
    value.refuse(
        "a rule with one glob in \"of\", no \"stack\" and no constant, since it has \"same\", "
        "\"interleave\", \"join\" or \"at\"");
  }
  check_wildcards(value, rule);
  return rule;
}

}  // namespace shardtool::mapping
