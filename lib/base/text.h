#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardtool/base/checked.h"

namespace shardtool {

/// Appends sixteen lower-case hexadecimal digits.
void append_hex(std::string& out, std::uint64_t number);
/// "14.96 GiB", "520 KiB", "17 B": IEC units, two decimals unless exact.
std::string format_bytes(i64 bytes);
/// "8,030,261,248".
std::string format_count(i64 count);
/// "1 tensor", "1,200 tensors".
std::string plural(i64 count, std::string_view noun);
/// UTF-8 text for a message: controls and marks of bidirectional text escaped, at most `limit`
/// bytes of whole characters, then "..." where cut.
std::string quote_for_message(std::string_view text, size_t limit = 200);
/// The candidates within Damerau-Levenshtein distance 2 of `word` (and less than its length),
/// nearest first, at most three.
std::vector<std::string> near_misses(std::string_view word,
                                     const std::vector<std::string>& candidates);
/// `near_misses` as "did you mean 'a' or 'b'?", empty when there are none.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace shardtool
