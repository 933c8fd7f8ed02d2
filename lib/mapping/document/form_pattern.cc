#include "lib/mapping/document/form_pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/base/text.h"

namespace shardtool::mapping {
namespace {

/// True if a dotted part of a form means itself as a glob: * alone stands for a number.
bool is_plain(std::string_view part) {
  return part == "*" || part.find_first_of("*{}<>") == part.npos;
}

bool is_glob(std::string_view form) {
  return std::ranges::all_of(split_at(form, "."), is_plain);
}

std::string regex_of(std::string_view form) {
  std::vector<std::string> parts;
  for (const std::string_view part : split_at(form, "."))
    parts.push_back(part == "*" ? "[^.]*" : RE2::QuoteMeta({part.data(), part.size()}));
  return fmt::format("^{}$", fmt::join(parts, "\\."));
}

}  // namespace

std::string form_pattern(std::string_view form, std::string_view separator) {
  const bool as_glob = !form.empty() && is_glob(form);
  const std::string text = as_glob ? std::string(form) : regex_of(form);
  return fmt::format("\"{}\"{}{}", as_glob ? "match" : "regex", separator,
                     nlohmann::json(text).dump());
}

}  // namespace shardtool::mapping
