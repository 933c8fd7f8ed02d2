#include "lib/format/gguf/pairs.h"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace shardtool::format::gguf {
namespace {

constexpr std::uint64_t kLongestKey = 65535;
constexpr std::uint64_t kLongestText = kMaxHeaderBytes;
constexpr size_t kKeptText = 200;
constexpr int kMostNested = 4;

/// Types of values, by number.
enum class Kind : std::uint32_t { kBool = 7, kString = 8, kArray = 9, kU64 = 10 };
struct ValueType {
  const char* name;
  int bytes;  ///< 0: of variable size
  bool is_signed;
  bool is_integer;
};
constexpr auto kValueTypes = std::to_array<ValueType>({
    {"u8", 1, false, true},
    {"i8", 1, true, true},
    {"u16", 2, false, true},
    {"i16", 2, true, true},
    {"u32", 4, false, true},
    {"i32", 4, true, true},
    {"f32", 4, true, false},
    {"bool", 1, false, true},
    {"string", 0, false, false},
    {"array", 0, false, false},
    {"u64", 8, false, true},
    {"i64", 8, true, true},
    {"f64", 8, true, false},
});

const ValueType& type_of(std::uint32_t kind, const Cursor& cursor) {
  if (kind < kValueTypes.size()) return kValueTypes[kind];
  cursor.fail(fmt::format("a value has the unknown type {}", kind));
}

std::optional<i64> read_integer(const ValueType& type, Cursor& cursor) {
  switch (type.bytes) {
    case 1:
      return type.is_signed ? i64{cursor.value<std::int8_t>()} : cursor.value<std::uint8_t>();
    case 2:
      return type.is_signed ? i64{cursor.value<std::int16_t>()} : cursor.value<std::uint16_t>();
    case 4:
      return type.is_signed ? i64{cursor.value<std::int32_t>()} : cursor.value<std::uint32_t>();
    default:
      break;
  }
  if (type.is_signed) return cursor.value<std::int64_t>();
  const auto value = cursor.value<std::uint64_t>();
  if (value > static_cast<std::uint64_t>(std::numeric_limits<i64>::max())) return std::nullopt;
  return static_cast<i64>(value);
}

/// Skips an array and returns its length; `type` gets the names of the elements' types.
std::uint64_t skip_array(Cursor& cursor, std::string& type, int depth) {
  const auto kind = cursor.value<std::uint32_t>();
  const auto count = cursor.value<std::uint64_t>();
  const ValueType& element = type_of(kind, cursor);
  type += fmt::format(" of {}", element.name);
  if (element.bytes > 0) {
    const auto width = static_cast<std::uint64_t>(element.bytes);
    if (count > static_cast<std::uint64_t>(cursor.left()) / width) cursor.fail_at_end();
    cursor.skip(count * width);
    return count;
  }
  if (depth == kMostNested) cursor.fail("arrays are nested too deeply");
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string nested;
    if (kind == static_cast<std::uint32_t>(Kind::kString)) {
      cursor.text(kLongestText, 0);
    } else {
      skip_array(cursor, i == 0 ? type : nested, depth + 1);
    }
  }
  return count;
}

}  // namespace

Pair read_pair(Cursor& cursor) {
  Pair pair;
  pair.key = cursor.text(kLongestKey, kLongestKey);
  const auto kind = cursor.value<std::uint32_t>();
  const ValueType& type = type_of(kind, cursor);
  pair.type = type.name;
  if (kind == static_cast<std::uint32_t>(Kind::kString)) {
    pair.text = cursor.text(kLongestText, kKeptText);
  } else if (kind == static_cast<std::uint32_t>(Kind::kArray)) {
    pair.number = static_cast<i64>(skip_array(cursor, pair.type, 0));
  } else if (!type.is_integer) {
    cursor.skip(static_cast<std::uint64_t>(type.bytes));
  } else {
    pair.number = read_integer(type, cursor);
  }
  if (kind == static_cast<std::uint32_t>(Kind::kBool) && *pair.number > 1) {
    cursor.fail(fmt::format("a bool has the value {}", *pair.number));
  }
  return pair;
}

}  // namespace shardtool::format::gguf
