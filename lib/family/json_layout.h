#pragma once

#include <string>

#include "lib/family/family_file.h"

namespace shardtool::family {

/// The value as text for people: two spaces per level; objects and arrays that fit into 120
/// characters, and every op of a graph, on one line. Ends with a newline.
std::string laid_out(const Json& value);

}  // namespace shardtool::family
