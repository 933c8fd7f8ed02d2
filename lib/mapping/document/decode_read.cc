#include <fmt/format.h>

#include <algorithm>

#include "lib/mapping/document/decode.h"

namespace shardtool::mapping {
namespace {

bool is_number_of(const GlobToken& token, const std::vector<std::string>& names) {
  return token.kind == GlobToken::Kind::kNumber && std::ranges::count(names, token.text) > 0;
}

/// Checks that the wildcards of "name" and the stacked numbers give the texts of every part's.
void check_wildcards(const JsonValue& value, const ReadRule& rule) {
  const std::vector<GlobToken> named = rule.name.wildcards();
  for (const Glob& part : rule.of) {
    std::vector<GlobToken> own = part.wildcards();
    const auto stacked =
        std::erase_if(own, [&](const GlobToken& one) { return is_number_of(one, rule.stacked); });
    if (stacked != rule.stacked.size()) {
      throw value.error(ErrorCode::kMappingSchema,
                        fmt::format("'{}' lacks a number that \"stacked\" names", part.text()));
    }
    if (own.size() <= named.size() && std::equal(own.begin(), own.end(), named.begin())) continue;
    throw value
        .error(ErrorCode::kMappingSchema,
               fmt::format("the wildcards of '{}' and '{}' differ", rule.name.text(), part.text()))
        .help("the wildcards of \"of\" are the first ones of \"name\", in the same order");
  }
}

}  // namespace

ReadRule decode_read_rule(const JsonValue& value) {
  ReadRule rule;
  rule.place = value.place();
  value.object({
      {"name", [&](const JsonValue& v) { rule.name = decode_glob(v); }, true},
      {"of", [&](const JsonValue& v) { rule.of = decode_globs(v); }, true},
      {"stacked",
       [&](const JsonValue& v) {
         for (const JsonValue& name : decode_names(v)) rule.stacked.push_back(name.identifier());
       }},
      {"axis", [&](const JsonValue& v) { rule.axis = static_cast<size_t>(v.integer(0)); }},
      {"shares",
       [&](const JsonValue& v) {
         for (const JsonValue& share : v.elements()) rule.shares.push_back(decode_size(share));
       }},
      {"groups", [&](const JsonValue& v) { rule.groups = decode_size(v); }},
      {"size", [&](const JsonValue& v) { rule.size = decode_size(v); }},
      {"interleaved", [&](const JsonValue& v) { rule.interleaved = decode_size(v); }},
  });
  if (rule.of.empty()) value.refuse("a rule with at least one glob in \"of\"");
  if (!rule.shares.empty() && rule.shares.size() != rule.of.size()) {
    value.refuse("a rule with as many \"shares\" as globs in \"of\"");
  }
  const bool has_parts = rule.of.size() > 1;
  if (has_parts && (rule.size || rule.interleaved)) {
    value.refuse("a rule with one glob in \"of\", since it has \"size\" or \"interleaved\"");
  }
  if (!has_parts && (rule.groups || !rule.shares.empty())) {
    value.refuse("a rule with several globs in \"of\", since it has \"groups\" or \"shares\"");
  }
  check_wildcards(value, rule);
  return rule;
}

}  // namespace shardtool::mapping
