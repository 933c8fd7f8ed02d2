#include "shardtool/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace shardtool {
namespace {

/// The two hexadecimal digits of every byte.
constexpr auto kHexDigits = [] {
  std::array<std::array<char, 2>, 256> digits{};
  for (size_t byte = 0; byte < digits.size(); ++byte) {
    digits[byte] = {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
  }
  return digits;
}();

/// Damerau-Levenshtein distance, optimal string alignment form. O(|a| * |b|).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t swap_cost = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + swap_cost});
      const bool transposed = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (transposed) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

/// The end of the UTF-8 character that begins at `begin`: behind as many continuation bytes as its
/// first byte announces, where they are there. A byte that begins none stands for itself.
size_t end_of_character(std::string_view text, size_t begin) {
  const auto first = static_cast<unsigned char>(text[begin]);
  size_t end = begin + 1;
  if (first < 0xc0 || first >= 0xf8) return end;
  const size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const size_t last = std::min(text.size(), begin + length);
  while (end < last && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
  return end;
}

/// The code point of a character, or the byte that begins none.
char32_t code_point(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  char32_t point = byte(0) & (0x7fU >> character.size());
  for (size_t i = 1; i < character.size(); ++i) point = point << 6 | (byte(i) & 0x3fU);
  return point;
}

/// Whether a terminal would act on it, or show other characters in another order: controls (C0, C1)
/// and the marks of bidirectional text (Unicode Standard Annex #9).
bool is_unsafe(char32_t point) {
  const auto in = [point](char32_t first, char32_t last) {
    return first <= point && point <= last;
  };
  return in(0, 0x1f) || in(0x7f, 0x9f) || point == 0x61c || in(0x200e, 0x200f) ||
         in(0x202a, 0x202e) || in(0x2066, 0x2069);
}

/// "\x1b", "\u202e".
std::string escaped(char32_t point) {
  const auto number = static_cast<unsigned>(point);
  return number < 0x100 ? fmt::format("\\x{:02x}", number) : fmt::format("\\u{:04x}", number);
}

}  // namespace

void append_hex(std::string& out, std::uint64_t number) {
  std::array<char, 16> digits;
  for (size_t i = 0; i < 8; ++i) {
    std::memcpy(&digits[2 * i], kHexDigits[number >> (56 - 8 * i) & 0xFF].data(), 2);
  }
  out.append(digits.data(), digits.size());
}

std::string format_bytes(i64 bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.995 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == static_cast<double>(static_cast<i64>(value));
  return whole ? fmt::format("{} {}", static_cast<i64>(value), kUnits[unit])
               : fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::string format_count(i64 count) {
  std::string digits = std::to_string(count);
  const i64 first = digits[0] == '-' ? 1 : 0;
  for (i64 at = static_cast<i64>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string plural(i64 count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string quote_for_message(std::string_view text, size_t limit) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = end_of_character(text, at);
    const std::string_view character = text.substr(at, end - at);
    const char32_t point = code_point(character);
    const std::string shown = is_unsafe(point) ? escaped(point) : std::string(character);
    if (out.size() + shown.size() > limit) return out + "...";
    out += shown;
    at = end;
  }
  return out;
}

std::vector<std::string> near_misses(std::string_view word,
                                     const std::vector<std::string>& candidates) {
  constexpr size_t kMaxDistance = 2;
  constexpr size_t kMaxAnswers = 3;
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const auto& candidate : candidates) {
    const size_t longer = std::max(candidate.size(), word.size());
    const size_t shorter = std::min(candidate.size(), word.size());
    if (longer - shorter > kMaxDistance || longer > 256) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance <= kMaxDistance && distance < word.size())
      ranked.emplace_back(distance, candidate);
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
  std::vector<std::string> answers;
  for (const auto& [distance, candidate] : ranked) {
    if (answers.size() < kMaxAnswers) answers.push_back(candidate);
  }
  return answers;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto answers = near_misses(word, candidates);
  if (answers.empty()) return {};
  std::string text = "did you mean ";
  for (size_t i = 0; i < answers.size(); ++i) {
    if (i > 0) text += i + 1 == answers.size() ? " or " : ", ";
    text += "'" + answers[i] + "'";
  }
  return text + "?";
}

}  // namespace shardtool
