#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/error.h"
#include "lib/format/safetensors/safetensors.h"

namespace shardtool::format::safetensors {
namespace {

using nlohmann::json;
using Metadata = std::vector<std::pair<std::string, std::string>>;

auto key(const Entry& e) {
  return std::tie(e.begin, e.end, e.name, e.dtype, e.shape);
}

bool same(const std::vector<Entry>& a, const std::vector<Entry>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Entry& x, const Entry& y) { return key(x) == key(y); });
}

/// Reference implementation: nlohmann's tree, with a callback that rejects lenient input.
class Reference {
 public:
  static std::optional<std::vector<Entry>> read(const std::string& text, i64 file_size) {
    if (text.find('\0') != std::string::npos || text.starts_with("\xef\xbb\xbf"))
      return std::nullopt;
    std::vector<std::set<std::string>> keys;
    bool strict = true;
    const auto callback = [&](int depth, json::parse_event_t event, json& parsed) {
      if (depth > 15) strict = false;
      if (event == json::parse_event_t::object_start) keys.emplace_back();
      if (event == json::parse_event_t::object_end) keys.pop_back();
      if (event == json::parse_event_t::key) {
        strict = keys.back().insert(parsed.get<std::string>()).second && strict;
      }
      return true;
    };
    const json tree = json::parse(text, callback, false);
    if (!strict || !tree.is_object()) return std::nullopt;
    auto entries = entries_of(tree);
    if (!entries) return std::nullopt;
    std::sort(entries->begin(), entries->end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    i64 next = 0;
    for (const Entry& entry : *entries) {
      if (entry.begin != next) return std::nullopt;
      next = entry.end;
    }
    if (8 + static_cast<i64>(text.size()) + next != file_size) return std::nullopt;
    return entries;
  }

 private:
  static bool is_size(const json& value) {
    return value.is_number_unsigned() && value.get<std::uint64_t>() <= INT64_MAX;
  }
  static bool are_sizes(const json& value) {
    return value.is_array() && std::all_of(value.begin(), value.end(), is_size);
  }
  static bool is_metadata(const json& value) {
    return value.is_null() ||
           (value.is_object() &&
            std::all_of(value.begin(), value.end(), [](const json& v) { return v.is_string(); }));
  }
  static std::optional<std::vector<Entry>> entries_of(const json& tree) {
    std::vector<Entry> entries;
    for (const auto& [name, value] : tree.items()) {
      if (name == "__metadata__") {
        if (!is_metadata(value)) return std::nullopt;
        continue;
      }
      const auto entry = entry_of(name, value);
      if (!entry) return std::nullopt;
      entries.push_back(*entry);
    }
    return entries;
  }
  static std::optional<Entry> entry_of(const std::string& name, const json& value) {
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (!value.is_object() || !value.contains(field)) return std::nullopt;
    }
    const json& offsets = value["data_offsets"];
    if (!value["dtype"].is_string() || !are_sizes(value["shape"]) || !are_sizes(offsets) ||
        offsets.size() != 2) {
      return std::nullopt;
    }
    const auto dtype = parse_dtype(value["dtype"].get<std::string>());
    if (!dtype) return std::nullopt;
    const Entry entry{name, *dtype, value["shape"].get<Shape>(), offsets[0].get<i64>(),
                      offsets[1].get<i64>()};
    if (byte_size(*dtype, entry.shape) != entry.end - entry.begin) return std::nullopt;
    return entry;
  }
};

/// Consecutive tensors of any whole-byte dtype with up to three axes, zero sizes included.
std::vector<Entry> random_entries() {
  const auto names = *rc::gen::container<std::set<std::string>>(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab./~\"\\\n 0"))));
  std::vector<Entry> entries;
  i64 next = 0;
  for (const std::string& name : names) {
    const auto row =
        *rc::gen::elementOf(std::vector<DtypeInfo>(dtype_table().begin(), dtype_table().end()));
    Entry entry{name, row.dtype, {}, next, 0};
    const int rank = *rc::gen::inRange(0, 4);
    for (int axis = 0; axis < rank; ++axis) entry.shape.push_back(*rc::gen::inRange<i64>(0, 5));
    if (row.bits < 8) entry.shape.push_back(4);
    next += byte_size(entry.dtype, entry.shape).value();
    entry.end = next;
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string json_of(const std::vector<Entry>& entries, const Metadata& metadata) {
  return write_header(entries, metadata, 8).substr(8);
}

i64 file_size_of(const std::string& text, const std::vector<Entry>& entries) {
  return 8 + static_cast<i64>(text.size()) + (entries.empty() ? 0 : entries.back().end);
}

std::vector<Entry> sorted(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  return entries;
}

std::optional<std::vector<Entry>> parse(const std::string& text, i64 file_size) {
  try {
    return parse_header(text, file_size, "f.safetensors").entries;
  } catch (const Error& error) {
    CHECK(error.exit_status() == 4);
    REQUIRE(error.place());
    CHECK(error.place()->file == "f.safetensors");
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("what write_header writes, parse_header reads") {
  CHECK(rc::check("round trip", [] {
    const auto entries = random_entries();
    const Metadata metadata = {{"format", "pt"}, {"k\"\n", "v\\"}};
    const std::string text = json_of(entries, metadata);
    const Header header = parse_header(text, file_size_of(text, entries), "f");
    RC_ASSERT(same(header.entries, sorted(entries)));
    RC_ASSERT(header.metadata == metadata);
    RC_ASSERT(header.data_begin == 8 + static_cast<i64>(text.size()));
    RC_ASSERT(header.warnings.empty());
  }));
}

TEST_CASE("a damaged header gets the verdict of the slow reference") {
  const std::vector<std::string> splices = {
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      "\"",
      "0",
      "1",
      "-",
      ".0",
      "e0",
      " ",
      "null",
      "\"x\":1,",
      "\"dtype\":\"U8\",",
      "\"shape\":[],",
      "\"__metadata__\":{},",
      "\"__metadata__\":null,",
      "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},",
      "\\u0061",
      "\xc3",
      "\xef\xbb\xbf",
      "99999999999999999999"};
  CHECK(rc::check("splices", [&splices] {
    const auto entries = random_entries();
    std::string text = json_of(entries, {});
    const i64 size = file_size_of(text, entries);
    const int edits = *rc::gen::inRange(1, 3);
    for (int i = 0; i < edits; ++i) {
      const auto at = *rc::gen::inRange<size_t>(0, text.size() + 1);
      const auto length = *rc::gen::inRange<size_t>(0, 3);
      text.replace(at, length, *rc::gen::elementOf(splices));
    }
    const i64 new_size = *rc::gen::arbitrary<bool>() ? size : file_size_of(text, entries);
    const auto expected = Reference::read(text, new_size);
    const auto actual = parse(text, new_size);
    RC_ASSERT(actual.has_value() == expected.has_value());
    if (actual) RC_ASSERT(same(*actual, *expected));
  }));
}

TEST_CASE("a valid header with one byte changed gets the verdict of the slow reference") {
  const std::string text =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})";
  CHECK(rc::check("one byte", [&text] {
    std::string changed = text;
    changed[*rc::gen::inRange<size_t>(0, text.size())] =
        static_cast<char>(*rc::gen::inRange(0, 256));
    const auto size = 8 + static_cast<i64>(text.size()) + 9;
    const auto expected = Reference::read(changed, size);
    const auto actual = parse(changed, size);
    RC_ASSERT(actual.has_value() == expected.has_value());
    if (actual) RC_ASSERT(same(*actual, *expected));
  }));
}

TEST_CASE("an entry that is written in another way gets the verdict of the slow reference") {
  const std::vector<std::string> spellings = {
      R"({"dtype":"U8","shape":[1,12],"data_offsets":[0,12]})",
      R"({"dtype": "U8", "shape": [1, 12], "data_offsets": [0, 12]})",
      R"({"dtype":"U8","shape":[1,12],"data_offsets":[0,12] })",
      R"({"shape":[1,12],"dtype":"U8","data_offsets":[0,12]})",
      R"({"dtype":"U8","data_offsets":[0,12],"shape":[1,12]})",
      R"({"dtype":"\u00558","shape":[1,12],"data_offsets":[0,12]})",
      R"({"dtype":"U8","shape":[1,12],"data_offsets":[0,12],"more":[{}]})",
      R"({"dtype":"U8","shape":[1,12],"data_offsets":[0,12],"dtype":"U8"})",
      R"({"dtype":"U8","shape":[1,12],"data_offsets":[0,12,0]})",
      R"({"dtype":"U8","shape":[1,12],"data_offsets":[0]})",
      R"({"dtype":"U8","shape":[1,12],"data_offsets":[12,0]})",
      R"({"dtype":"U8","shape":[1,12],"data_offsets":[0,012]})",
      R"({"dtype":"U8","shape":[01,12],"data_offsets":[0,12]})",
      R"({"dtype":"U8","shape":[1,12,],"data_offsets":[0,12]})",
      R"({"dtype":"U8","shape":[,1,12],"data_offsets":[0,12]})",
      R"({"dtype":"U8","shape":[1,12.0],"data_offsets":[0,12]})",
      R"({"dtype":"U8","shape":[1,12],"data_offsets":[0,12e0]})",
      R"({"dtype":"U8","shape":[-1,-12],"data_offsets":[0,12]})",
      R"({"dtype":"U8","shape":[0,9223372036854775807],"data_offsets":[0,0]})",
      R"({"dtype":"U8","shape":[0,9223372036854775808],"data_offsets":[0,0]})",
      R"({"dtype":"U8","shape":[0,999999999999999999],"data_offsets":[0,0]})",
      R"({"dtype":"","shape":[1,12],"data_offsets":[0,12]})",
      R"({"dtype":"u8","shape":[1,12],"data_offsets":[0,12]})",
      R"({"dtype":"U16","shape":[1,12],"data_offsets":[0,12]})",
      R"({"dtype":"F4","shape":[24],"data_offsets":[0,12]})",
      R"({"dtype":"F4","shape":[25],"data_offsets":[0,12]})",
  };
  for (const std::string& spelling : spellings) {
    CAPTURE(spelling);
    for (const i64 bytes : {0, 12}) {
      const std::string begin = std::to_string(bytes);
      const std::string text = R"({"a":)" + spelling + R"(,"b":{"dtype":"U8","shape":[9],)" +
                               R"("data_offsets":[)" + begin + "," + std::to_string(bytes + 9) +
                               "]}}";
      const i64 size = 8 + static_cast<i64>(text.size()) + bytes + 9;
      const auto expected = Reference::read(text, size);
      const auto actual = parse(text, size);
      CHECK(actual.has_value() == expected.has_value());
      if (actual && expected) CHECK(same(*actual, *expected));
    }
  }
}

TEST_CASE("the order of the entries in the text does not matter") {
  CHECK(rc::check("shuffle", [] {
    const auto entries = random_entries();
    auto shuffled = entries;
    const auto seed = *rc::gen::arbitrary<unsigned>();
    std::shuffle(shuffled.begin(), shuffled.end(), std::minstd_rand(seed));
    const std::string text = json_of(shuffled, {});
    RC_ASSERT(same(parse_header(text, file_size_of(text, entries), "f").entries, sorted(entries)));
  }));
}

TEST_CASE("a header larger than its file is refused, even without tensors") {
  CHECK_FALSE(parse("{}        ", 10));
}

TEST_CASE("the header's hash is that of the length and the JSON") {
  const Header header = parse_header("{}", 10, "f");
  CHECK(header.xxh3.size() == 32);
  CHECK(header.xxh3 != parse_header("{} ", 11, "f").xxh3);
}

TEST_CASE("data begins at the alignment, and padding is spaces") {
  for (const i64 alignment : {8, 64, 4096}) {
    const std::string header = write_header({}, {}, alignment);
    CHECK(static_cast<i64>(header.size()) % alignment == 0);
    CHECK(header.substr(8, 2) == "{}");
    CHECK(header.find_first_not_of(' ', 10) == std::string::npos);
  }
}

TEST_CASE("a header above the format's limit is not written") {
  const Entry entry{std::string(kMaxHeaderBytes, 'n'), Dtype::kU8, {}, 0, 1};
  try {
    write_header(std::span(&entry, 1), {}, 8);
    FAIL("written");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kLimit);
  }
}

}  // namespace shardtool::format::safetensors
