#pragma once

#include <span>
#include <string>

#include "shardtool/base/checked.h"

namespace shardtool {

/// Numbers in decimal, behind what `out` has.
void append_json_integer(std::string& out, i64 number);
/// "[1,2,3]".
void append_json_integers(std::string& out, std::span<const i64> numbers);

}  // namespace shardtool
