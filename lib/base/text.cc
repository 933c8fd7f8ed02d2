#include "lib/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace shardtool {
namespace {

/// Two hexadecimal digits for every byte.
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

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

/// Code point of a valid UTF-8 sequence.
char32_t code_point(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  char32_t point = byte(0) & (0x7fU >> character.size());
  for (size_t i = 1; i < character.size(); ++i) point = point << 6 | (byte(i) & 0x3fU);
  return point;
}

/// True for characters that control a terminal, break a line or reorder text: controls (C0, DEL,
/// C1), line and paragraph separators, and bidirectional marks (Unicode Standard Annex #9).
bool is_unsafe(char32_t point) {
  const auto in = [point](char32_t first, char32_t last) {
    return first <= point && point <= last;
  };
  return in(0, 0x1f) || in(0x7f, 0x9f) || point == 0x61c || in(0x200e, 0x200f) ||
         in(0x2028, 0x202e) || in(0x2066, 0x2069);
}

}  // namespace

void append_hex(std::string& out, std::uint64_t number) {
  std::array<char, 16> digits;
  for (size_t i = 0; i < 8; ++i) {
    std::memcpy(&digits[2 * i], kHexDigits[number >> (56 - 8 * i) & 0xFF].data(), 2);
  }
  out.append(digits.data(), digits.size());
}

std::string to_hex(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) {
    digits.append(kHexDigits[static_cast<unsigned char>(byte)].data(), 2);
  }
  return digits;
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

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (size_t end = text.find(separator); end != text.npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
  }
  parts.push_back(text);
  return parts;
}

std::string plural(i64 count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

size_t utf8_length(std::string_view text) {
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&byte](size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const unsigned low = lead == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = lead == 0xed ? 0x9f : 0xbf;
    return byte(1) >= low && byte(1) <= high && continues(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const unsigned low = lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xf4 ? 0x8f : 0xbf;
    return byte(1) >= low && byte(1) <= high && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto tail = [](char32_t bits) { return static_cast<char>(0x80 | (bits & 0x3f)); };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += {static_cast<char>(0xc0 | code_point >> 6), tail(code_point)};
  } else if (code_point < 0x10000) {
    out += {static_cast<char>(0xe0 | code_point >> 12), tail(code_point >> 6), tail(code_point)};
  } else {
    out += {static_cast<char>(0xf0 | code_point >> 18), tail(code_point >> 12),
            tail(code_point >> 6), tail(code_point)};
  }
}

size_t append_escaped_character(std::string& out, std::string_view text) {
  const size_t length = utf8_length(text.substr(0, 4));
  if (length == 0) {
    out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    return 1;
  }
  const char32_t point = code_point(text.substr(0, length));
  if (!is_unsafe(point)) {
    out += text.substr(0, length);
  } else if (point < 0x20) {
    out += fmt::format("\\x{:02x}", static_cast<unsigned>(point));
  } else {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(point));
  }
  return length;
}

std::string quote_for_message(std::string_view text, size_t limit) {
  std::string out;
  while (!text.empty()) {
    const size_t before = out.size();
    text.remove_prefix(append_escaped_character(out, text));
    if (out.size() <= limit) continue;
    out.resize(before);
    return out + "...";
  }
  return out;
}

size_t character_boundary(std::string_view text, size_t at) {
  while (at < text.size() && continues_character(text[at])) ++at;
  return std::min(at, text.size());
}

size_t display_width(std::string_view text) {
  return text.size() -
         static_cast<size_t>(std::count_if(text.begin(), text.end(), continues_character));
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
