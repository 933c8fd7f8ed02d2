#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool {

/// Appends sixteen lowercase hexadecimal digits.
void append_hex(std::string& out, std::uint64_t number);
/// Formats two lowercase hexadecimal digits per byte.
std::string to_hex(std::string_view bytes);
/// Formats bytes in IEC units, with two decimals unless exact: "14.96 GiB", "520 KiB", "17 B".
std::string format_bytes(i64 bytes);
/// Formats a count as "8,030,261,248".
std::string format_count(i64 count);
/// Returns the texts between separators, in order; empty ones, too, and at least one. They view
/// `text`.
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator);
/// Formats a count with its noun: "1 tensor", "1,200 tensors".
std::string plural(i64 count, std::string_view noun);
/// Byte length of the UTF-8 sequence at the front of `text`, or 0 if it is invalid (Unicode 15,
/// table 3-7: no overlong forms, no surrogates, no code points above U+10FFFF).
size_t utf8_length(std::string_view text);
/// Appends a code point below 0x110000 in UTF-8.
void append_utf8(std::string& out, char32_t code_point);
/// Appends the first character of a non-empty text and returns its length in bytes. Characters that
/// control a terminal or reorder text become "\x1b" (below a space) or "\u202e" (from DEL on,
/// JSON's escape). A byte that is not UTF-8 becomes "\xff".
size_t append_escaped_character(std::string& out, std::string_view text);
/// Escapes every character as above and keeps at most `limit` bytes of whole characters; "..."
/// marks a cut.
std::string quote_for_message(std::string_view text, size_t limit = 200);
/// First offset >= `at` that does not split a UTF-8 character.
size_t character_boundary(std::string_view text, size_t at);
/// Number of characters of a UTF-8 text (bytes that are not continuation bytes).
size_t display_width(std::string_view text);
/// Returns at most three candidates within Damerau-Levenshtein distance 2 of `word` (and less than
/// its length), nearest first.
std::vector<std::string> near_misses(std::string_view word,
                                     const std::vector<std::string>& candidates);
/// Formats `near_misses` as "did you mean 'a' or 'b'?"; empty if there are none.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace shardtool
