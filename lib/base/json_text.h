#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/base/checked.h"

namespace shardtool {

/// The text as a JSON string with its quotes. Valid UTF-8 stays as it is.
std::string json_quote(std::string_view text);
/// The same behind what `out` has.
void append_json_quoted(std::string& out, std::string_view text);
/// Numbers in decimal, behind what `out` has.
void append_json_integer(std::string& out, i64 number);
/// "[1,2,3]".
void append_json_integers(std::string& out, std::span<const i64> numbers);

}  // namespace shardtool
