#include "cli/size_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr i64 kMaxRank = (i64{1} << 31) - 2;  // a mesh has at most 2^31 - 1 devices
constexpr i64 kMaxRanks = 65536;

Error refusal(std::string_view flag, std::string_view text, std::string_view wanted) {
  return Error(ErrorCode::kUsage,
               fmt::format("{} '{}' is not {}", flag, quote_for_message(text), wanted));
}

/// Parses plain digits; rejects signs, blanks and overflow.
std::optional<i64> parse_digits(std::string_view text) {
  i64 value = 0;
  const auto end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return std::nullopt;
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

/// Removes the leading digits of `text` and returns them.
std::string_view take_digits(std::string_view& text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

/// Bytes of a unit: "", "B", "k", "KB", "KiB", "Ki", ...
std::optional<i64> unit_bytes(std::string_view unit) {
  constexpr std::string_view kPrefixes = "kmgtp";
  std::string lower(unit);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower.ends_with('b')) lower.pop_back();
  if (lower.empty()) return 1;
  const i64 base = lower.ends_with('i') ? 1024 : 1000;
  if (base == 1024) lower.pop_back();
  const auto power = lower.size() == 1 ? kPrefixes.find(lower[0]) : std::string_view::npos;
  if (power == std::string_view::npos) return std::nullopt;
  i64 bytes = base;
  for (size_t i = 0; i < power; ++i) bytes *= base;
  return bytes;
}

/// digits * 10^exponent * unit, or nullopt if that is not a whole number or overflows.
std::optional<i64> scaled(const std::string& digits, i64 exponent, i64 unit) {
  auto value = parse_digits(digits);
  for (; value && exponent > 0; --exponent) value = checked_mul(*value, 10);
  i64 divisor = 1;
  for (; exponent < 0; ++exponent) {
    const auto next = checked_mul(divisor, 10);
    if (!next) return std::nullopt;
    divisor = *next;
  }
  if (!value) return std::nullopt;
  const i64 shared = std::gcd(*value, divisor);
  if (unit % (divisor / shared) != 0) return std::nullopt;
  return checked_mul(*value / shared, unit / (divisor / shared));
}

std::optional<i64> read_size(std::string_view text) {
  constexpr i64 kMaxExponent = 18;  // 10^19 does not fit
  const auto whole = take_digits(text);
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = take_digits(text);
    if (fraction.empty()) return std::nullopt;
  }
  i64 exponent = 0;
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    const auto parsed = parse_digits(take_digits(text));
    if (!parsed || *parsed > kMaxExponent) return std::nullopt;
    exponent = *parsed;
  }
  const auto unit = unit_bytes(text);
  if (whole.empty() || !unit) return std::nullopt;
  const auto places = static_cast<i64>(fraction.size());
  return scaled(std::string(whole) + std::string(fraction), exponent - places, *unit);
}

struct RankRange {
  i64 first = 0;
  i64 last = 0;
};

RankRange parse_range(std::string_view flag, std::string_view text, std::string_view item) {
  const auto dash = item.find('-');
  const auto first = parse_digits(item.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_digits(item.substr(dash + 1));
  if (!first || !last || *first > *last || *last > kMaxRank) {
    throw refusal(flag, text, fmt::format("a list of ranks like 0-3,7 (each 0 to {})", kMaxRank));
  }
  return {*first, *last};
}

}  // namespace

i64 parse_size(std::string_view flag, std::string_view text, i64 least) {
  const auto bytes = read_size(text);
  if (!bytes || *bytes < least) {
    throw refusal(flag, text, fmt::format("a size in whole bytes, at least {}", least))
        .help("write 1.5GiB, 500MB, 64M or 2e9 (K M G T P count in 1000, Ki Mi Gi Ti Pi in 1024)");
  }
  return *bytes;
}

i64 parse_count(std::string_view flag, std::string_view text, i64 least, i64 most) {
  const auto value = parse_digits(text);
  if (!value || *value < least || *value > most) {
    throw refusal(flag, text, fmt::format("a whole number from {} to {}", least, most));
  }
  return *value;
}

std::vector<i64> parse_ranks(std::string_view flag, std::string_view text) {
  std::vector<i64> ranks;
  for (const std::string_view part : split_at(text, ",")) {
    const auto range = parse_range(flag, text, part);
    if (range.last - range.first >= kMaxRanks - static_cast<i64>(ranks.size())) {
      throw refusal(flag, text, fmt::format("a list of at most {} ranks", kMaxRanks));
    }
    for (i64 rank = range.first; rank <= range.last; ++rank) ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
  if (twice != ranks.end()) {
    throw refusal(flag, text, fmt::format("a list of ranks: {} is named twice", *twice));
  }
  return ranks;
}

}  // namespace shardtool::cli
