#pragma once

#include <algorithm>
#include <string_view>

namespace shardtool::mapping {

/// Letters, digits and underscores that do not begin with a digit: names of axes, captures, rules.
inline bool is_identifier(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && !digit(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || digit(c); });
}

/// A path into config.json (see ModelConfig): letters, digits, and _ . [ ] =.
inline bool is_config_path(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '[' || c == ']' || c == '=';
  });
}

}  // namespace shardtool::mapping
