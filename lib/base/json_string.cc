// String parsing of JsonReader.
#include <array>
#include <bit>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstring>
#include <optional>

#include "lib/base/json_reader.h"
#include "lib/base/text.h"

namespace shardtool {
namespace {

/// True for bytes that a string holds unescaped, independent of the bytes around them.
constexpr auto kStandsForItself = [] {
  std::array<bool, 256> table{};
  for (size_t byte = 0x20; byte < 0x80; ++byte) table[byte] = byte != '"' && byte != '\\';
  return table;
}();

/// Number of bytes from `at` on that stand for themselves. Looks at eight at a time.
size_t plain_bytes(std::string_view text, size_t at) {
  using Word = std::uint64_t;
  static_assert(std::endian::native == std::endian::little);
  constexpr Word kOnes = 0x0101010101010101;
  constexpr Word kHigh = 0x80 * kOnes;
  // The high bit of the first byte below `least` is set, and that of none before it.
  const auto below = [](Word bytes, Word least) { return (bytes - least * kOnes) & ~bytes; };
  size_t end = at;
  for (Word word = 0; text.size() - end >= sizeof(word); end += sizeof(word)) {
    std::memcpy(&word, text.data() + end, sizeof(word));
    const Word special =
        (word | below(word, 0x20) | below(word ^ '"' * kOnes, 1) | below(word ^ '\\' * kOnes, 1)) &
        kHigh;
    if (special != 0) return end + static_cast<size_t>(std::countr_zero(special)) / CHAR_BIT - at;
  }
  while (end < text.size() && kStandsForItself[static_cast<unsigned char>(text[end])]) ++end;
  return end - at;
}

std::optional<char> simple_escape(char letter) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const size_t at = kLetters.find(letter);
  if (at == std::string_view::npos) return std::nullopt;
  return kMeanings[at];
}

}  // namespace

/// Reads a string with both quotes.
void JsonReader::scan_string(std::string* into) {
  if (into != nullptr) into->clear();
  ++at_;
  while (true) {
    const size_t plain = plain_bytes(text_, at_);
    if (into != nullptr) into->append(text_, at_, plain);
    at_ += plain;
    if (at_ >= text_.size()) fail(at_, "the closing quote of a string");
    const char c = text_[at_];
    if (c == '"') break;
    if (c == '\\') {
      scan_escape(into);
    } else {
      scan_utf8(into);
    }
  }
  ++at_;
}

void JsonReader::scan_utf8(std::string* into) {
  if (static_cast<unsigned char>(text_[at_]) < 0x20) fail(at_, "an escape for a control character");
  const size_t length = utf8_length(text_.substr(at_, 4));
  if (length == 0) fail(at_, "valid UTF-8");
  if (into != nullptr) into->append(text_, at_, length);
  at_ += length;
}

void JsonReader::scan_escape(std::string* into) {
  const size_t begin = at_++;
  const char letter = at_ < text_.size() ? text_[at_] : '\0';
  ++at_;
  if (letter != 'u') {
    const auto meaning = simple_escape(letter);
    if (!meaning) fail(begin, "an escape that JSON knows");
    if (into != nullptr) *into += *meaning;
    return;
  }
  unsigned code_point = scan_hex4();
  if (code_point >= 0xdc00 && code_point < 0xe000) fail(begin, "a surrogate pair, high half first");
  if (code_point >= 0xd800 && code_point < 0xdc00) {
    if (text_.substr(at_, 2) != "\\u") fail(begin, "a surrogate pair");
    at_ += 2;
    const unsigned low = scan_hex4();
    if (low < 0xdc00 || low >= 0xe000) fail(begin, "a surrogate pair");
    code_point = 0x10000 + ((code_point - 0xd800) << 10) + (low - 0xdc00);
  }
  if (into != nullptr) append_utf8(*into, code_point);
}

unsigned JsonReader::scan_hex4() {
  const std::string_view digits = text_.substr(at_, 4);
  unsigned value = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  if (digits.size() != 4 || end != digits.data() + 4) fail(at_, "four hexadecimal digits");
  at_ += 4;
  return value;
}

}  // namespace shardtool
