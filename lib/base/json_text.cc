#include "shardtool/base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace shardtool {

void append_json_quoted(std::string& out, std::string_view text) {
  const auto is_plain = [](char c) {
    return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20;
  };
  out += '"';
  while (!text.empty()) {
    const auto special = std::find_if_not(text.begin(), text.end(), is_plain);
    const auto plain = static_cast<size_t>(special - text.begin());
    out += text.substr(0, plain);
    if (special == text.end()) break;
    if (*special == '"' || *special == '\\') {
      out += '\\';
      out += *special;
    } else {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(*special));
    }
    text.remove_prefix(plain + 1);
  }
  out += '"';
}

std::string json_quote(std::string_view text) {
  std::string out;
  append_json_quoted(out, text);
  return out;
}

void append_json_integer(std::string& out, i64 number) {
  std::array<char, 24> digits;
  const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), static_cast<size_t>(end - digits.data()));
}

void append_json_integers(std::string& out, std::span<const i64> numbers) {
  out += '[';
  for (const i64& number : numbers) {
    if (&number != numbers.data()) out += ',';
    append_json_integer(out, number);
  }
  out += ']';
}

}  // namespace shardtool
