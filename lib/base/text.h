#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool {

/// Appends sixteen lower-case hexadecimal digits.
void append_hex(std::string& out, std::uint64_t number);
/// "14.96 GiB", "520 KiB", "17 B": IEC units, two decimals unless exact.
std::string format_bytes(i64 bytes);
/// "8,030,261,248".
std::string format_count(i64 count);
/// "1 tensor", "1,200 tensors".
std::string plural(i64 count, std::string_view noun);
/// The byte length of the UTF-8 sequence at the front of `text`, or 0 when it is not valid
/// (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
size_t utf8_length(std::string_view text);
/// Appends the first character of a text that is not empty, and returns its length in bytes. What a
/// terminal would act on, or show in another order, becomes "\x1b" below a space and "\u202e" from
/// DEL on, which is JSON's escape, too; a byte that is no UTF-8 becomes "\xff".
size_t append_escaped_character(std::string& out, std::string_view text);
/// The text with every character escaped so, at most `limit` bytes of whole characters, then "..."
/// where cut.
std::string quote_for_message(std::string_view text, size_t limit = 200);
/// The first place at or behind `at` where no character of a UTF-8 text is cut apart.
size_t character_boundary(std::string_view text, size_t at);
/// Characters of a UTF-8 text: bytes that do not continue one.
size_t display_width(std::string_view text);
/// The candidates within Damerau-Levenshtein distance 2 of `word` (and less than its length),
/// nearest first, at most three.
std::vector<std::string> near_misses(std::string_view word,
                                     const std::vector<std::string>& candidates);
/// `near_misses` as "did you mean 'a' or 'b'?", empty when there are none.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace shardtool
