#include "lib/base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace shardtool {

namespace {

constexpr std::ptrdiff_t kBlock = 8;

/// Repeats a byte in all eight positions.
constexpr std::uint64_t everywhere(unsigned char byte) {
  return byte * std::uint64_t{0x0101010101010101};
}

bool is_plain(char c) {
  return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20;
}

/// is_plain for eight characters: a byte below n sets its top bit in (byte - n) & ~byte. Other
/// bytes do so only after a borrow from a lower byte below n.
bool is_plain_block(const char* text) {
  std::uint64_t block = 0;
  std::memcpy(&block, text, kBlock);
  const auto below = [](std::uint64_t bytes, unsigned char n) {
    return (bytes - everywhere(n)) & ~bytes;
  };
  const std::uint64_t found =
      below(block, 0x20) | below(block ^ everywhere('"'), 1) | below(block ^ everywhere('\\'), 1);
  return (found & everywhere(0x80)) == 0;
}

const char* first_special(const char* at, const char* end) {
  while (end - at >= kBlock && is_plain_block(at)) at += kBlock;
  return std::find_if_not(at, end, is_plain);
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const char* const special = first_special(text.data(), text.data() + text.size());
    const auto plain = static_cast<size_t>(special - text.data());
    out += text.substr(0, plain);
    if (plain == text.size()) break;
    if (*special == '"' || *special == '\\') {
      out += '\\';
      out += *special;
    } else {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(*special));
    }
    text.remove_prefix(plain + 1);
  }
}

void append_json_quoted(std::string& out, std::string_view text) {
  out += '"';
  append_json_escaped(out, text);
  out += '"';
}

std::string json_quote(std::string_view text) {
  std::string out;
  append_json_quoted(out, text);
  return out;
}

void append_json_integers(std::string& out, std::span<const i64> numbers) {
  out += '[';
  for (const i64& number : numbers) {
    if (&number != numbers.data()) out += ',';
    const fmt::format_int digits(number);
    out.append(digits.data(), digits.size());
  }
  out += ']';
}

}  // namespace shardtool
