#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardtool::family {

/// Every name of a pattern with alternatives: "{k,v}_proj" gives "k_proj" and "v_proj".
std::vector<std::string> alternatives(std::string_view pattern);

/// The placeholders of a pattern, in order: "layers.<layer>.experts.<expert>." gives "layer" and
/// "expert".
std::vector<std::string> placeholders(std::string_view pattern);

}  // namespace shardtool::family
