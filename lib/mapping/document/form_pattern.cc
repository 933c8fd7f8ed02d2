#include "lib/mapping/document/form_pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <nlohmann/json.hpp>

namespace shardtool::mapping {
namespace {

/// True if a dotted part of a form means itself as a glob: * alone stands for a number.
bool is_plain(std::string_view part) {
  return part == "*" || part.find_first_of("*{}<>") == part.npos;
}

bool is_glob(std::string_view form) {
  while (true) {
    const std::string_view part = form.substr(0, form.find('.'));
    if (!is_plain(part)) return false;
    if (part.size() == form.size()) return true;
    form.remove_prefix(part.size() + 1);
  }
}

std::string regex_of(std::string_view form) {
  std::string regex = "^";
  while (true) {
    const std::string_view part = form.substr(0, form.find('.'));
    regex += part == "*" ? "[^.]*" : RE2::QuoteMeta({part.data(), part.size()});
    if (part.size() == form.size()) return regex + "$";
    regex += "\\.";
    form.remove_prefix(part.size() + 1);
  }
}

}  // namespace

std::string form_pattern(std::string_view form, std::string_view separator) {
  const bool as_glob = !form.empty() && is_glob(form);
  const std::string text = as_glob ? std::string(form) : regex_of(form);
  return fmt::format("\"{}\"{}{}", as_glob ? "match" : "regex", separator,
                     nlohmann::json(text).dump());
}

}  // namespace shardtool::mapping
