#include "cli/size_argument.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <set>
#include <string>

#include "lib/base/error.h"

namespace shardtool::cli {
namespace {

bool refused(const std::string& text) {
  try {
    parse_size("--size", text);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kUsage && error.message().find("--size") == 0;
  }
  return false;
}

bool ranks_refused(const std::string& text) {
  try {
    parse_ranks("--ranks", text);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kUsage;
  }
  return false;
}

bool count_refused(const std::string& text, i64 least, i64 most) {
  try {
    parse_count("--n", text, least, most);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kUsage;
  }
  return false;
}

TEST_CASE("a size may be 0 only where that is said") {
  CHECK(refused("0"));
  CHECK(parse_size("--size", "0", 0) == 0);
}

TEST_CASE("a size is its digits times its unit, for every unit in any case") {
  CHECK(rc::check("n units", [] {
    using Unit = std::pair<std::string, i64>;
    const std::vector<Unit> units{{"", 1},
                                  {"B", 1},
                                  {"k", 1000},
                                  {"KB", 1000},
                                  {"KiB", 1024},
                                  {"ki", 1024},
                                  {"M", 1000000},
                                  {"mb", 1000000},
                                  {"MiB", 1 << 20},
                                  {"G", 1000000000},
                                  {"gIb", 1 << 30},
                                  {"TB", 1000000000000},
                                  {"TiB", i64{1} << 40},
                                  {"PiB", i64{1} << 50}};
    const auto [text, bytes] = *rc::gen::elementOf(units);
    const auto n = *rc::gen::inRange<i64>(1, 8000);
    RC_ASSERT(parse_size("--size", fmt::format("{}{}", n, text)) == n * bytes);
  }));
}

TEST_CASE("a fraction counts exactly or not at all") {
  CHECK(rc::check("thousandths", [] {
    const auto n = *rc::gen::inRange<i64>(1, 10'000'000);
    const auto text = fmt::format("{}.{:03}", n / 1000, n % 1000);
    RC_ASSERT(parse_size("--size", text + "KB") == n);
    const bool whole = n * 1024 % 1000 == 0;
    RC_ASSERT(refused(text + "KiB") == !whole);
    if (whole) RC_ASSERT(parse_size("--size", text + "KiB") == n * 1024 / 1000);
  }));
}

TEST_CASE("a size may have an exponent") {
  CHECK(parse_size("--size", "2e9") == 2'000'000'000);
  CHECK(parse_size("--size", "1.5E3") == 1500);
  CHECK(parse_size("--size", "1.5GiB") == 1'610'612'736);
}

TEST_CASE("what is no whole positive number of bytes is refused") {
  for (const auto* text : {"",        "0",     "0GiB", "-5M",
                           "+5",      " 5",    "5 ",   "10Q",
                           "KB",      ".5K",   "1.K",  "1.5",
                           "1e",      "1e99",  "e9",   "9223372036854775808",
                           "9000PiB", "1e18G", "0x10", "1.0000000000000000000000001K",
                           "1iB",     "5KBB",  "NaN",  "1,000"}) {
    CAPTURE(text);
    CHECK(refused(text));
  }
}

TEST_CASE("a rank list names each rank once, sorted, whatever the order of its ranges") {
  CHECK(rc::check("ranges and singles", [] {
    const auto ranks =
        *rc::gen::suchThat(rc::gen::container<std::set<i64>>(rc::gen::inRange<i64>(0, 40)),
                           [](const std::set<i64>& set) { return !set.empty(); });
    std::vector<std::string> items;
    for (auto at = ranks.begin(); at != ranks.end();) {
      auto last = at;
      while (std::next(last) != ranks.end() && *std::next(last) == *last + 1) ++last;
      items.push_back(at == last ? fmt::format("{}", *at) : fmt::format("{}-{}", *at, *last));
      at = std::next(last);
    }
    if (*rc::gen::arbitrary<bool>()) std::reverse(items.begin(), items.end());
    const auto text = fmt::format("{}", fmt::join(items, ","));
    RC_ASSERT(parse_ranks("--ranks", text) == std::vector<i64>(ranks.begin(), ranks.end()));
  }));
}

TEST_CASE("a malformed, reversed, repeated or endless rank list is refused") {
  for (const auto* text : {"", "-1", "4.5", "4abc", "1e3", "4294967296", "18446744073709551616",
                           "3-0", "1,1", "0-3,2", "0,", ",0", "0--1", "0-65536", "0-2000000000"}) {
    CAPTURE(text);
    CHECK(ranks_refused(text));
  }
  CHECK(parse_ranks("--ranks", "0-65535").size() == 65536);
}

TEST_CASE("a count is plain digits inside its bounds") {
  CHECK(parse_count("--n", "1024", 1, 1024) == 1024);
  for (const auto* text : {"0", "1025", "-1", "", "1.0", "1e3", " 1", "18446744073709551617"}) {
    CAPTURE(text);
    CHECK(count_refused(text, 1, 1024));
  }
}

}  // namespace
}  // namespace shardtool::cli
