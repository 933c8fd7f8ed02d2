#pragma once

#include <string>
#include <string_view>

namespace shardtool::mapping {

/// Returns the member of a rule that matches all names of a form (name_form): "match": "a.*.w", or
/// "regex" for names with characters that a glob reads otherwise, and for the empty name.
/// `separator` is between key and value.
std::string form_pattern(std::string_view form, std::string_view separator = ": ");

}  // namespace shardtool::mapping
