#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardtool::mapping {

/// Returns a pattern in the form of name_form, with * for <name>.
std::string pattern_form(std::string_view pattern);

/// Returns at most three of the names that are most like a pattern: those with the smallest edit
/// distance, each below half of the longer text. The nearest comes first.
std::vector<std::string> nearest_names(std::string_view pattern,
                                       const std::vector<std::string>& names);

}  // namespace shardtool::mapping
