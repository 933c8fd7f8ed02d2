#include "shardtool/base/json_text.h"

#include <array>
#include <charconv>

namespace shardtool {

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
