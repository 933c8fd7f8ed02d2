#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/base/checked.h"

namespace shardtool {

/// Quotes text as a JSON string. Valid UTF-8 is kept as it is.
std::string json_quote(std::string_view text);
/// Appends text as a JSON string with its quotes.
void append_json_quoted(std::string& out, std::string_view text);
/// Appends text as part of a JSON string, without quotes.
void append_json_escaped(std::string& out, std::string_view text);
/// Appends "[1,2,3]".
void append_json_integers(std::string& out, std::span<const i64> numbers);

}  // namespace shardtool
