#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "shardtool/base/checked.h"
#include "shardtool/base/error.h"
#include "shardtool/base/json_reader.h"
#include "shardtool/base/text.h"
#include "shardtool/checkpoint/safetensors/safetensors.h"
#include "shardtool/checkpoint/safetensors/tiling.h"
#include "shardtool/kernels/xxh3/xxh3.h"

namespace shardtool::checkpoint::safetensors {
namespace {

constexpr int kMaxDepth = 16;
constexpr i64 kLengthBytes = 8;
constexpr size_t kShortestEntry = 50;  // "":{"dtype":"U8","shape":[],"data_offsets":[0,0]},

/// Reads the header's JSON. Memory follows the entries that are there, never a number in the text.
class HeaderParser {
 public:
  HeaderParser(std::string_view json, const std::string& path)
      : in_(json, {path, ErrorCode::kHeaderJson, kLengthBytes}, kMaxDepth) {
    header_.entries.reserve(json.size() / kShortestEntry);
  }

  /// All entries in the order of the text, or those up to the one at which they must overlap.
  Header read() && {
    std::string key;
    in_.begin_object();
    while (!must_overlap_ && in_.next_key(key)) {
      if (key == "__metadata__") {
        read_metadata();
      } else {
        read_entry(key);
      }
    }
    if (!must_overlap_) in_.finish();
    warn_of_unknown_fields();
    return std::move(header_);
  }

 private:
  void read_metadata() {
    if (std::exchange(metadata_seen_, true)) {
      throw in_.error("a key stands twice", "__metadata__", "each key once");
    }
    if (in_.kind() == JsonKind::kNull) {
      in_.null();
      return;
    }
    std::set<std::string> keys;
    in_.begin_object();
    for (std::string key; in_.next_key(key);) {
      if (!keys.insert(key).second) {
        throw in_.error("a key stands twice", quote_for_message(key), "each key once");
      }
      header_.metadata.emplace_back(key, in_.string());
    }
  }

  void read_entry(const std::string& name) {
    Entry entry;
    entry.name = name;
    try {
      in_.object({{"dtype", [&] { entry.dtype = read_dtype(); }},
                  {"shape", [&] { entry.shape = read_shape(); }},
                  {"data_offsets", [&] { read_offsets(entry); }}},
                 [this](const std::string& field) { note_unknown(field); });
      check_size(entry);
    } catch (Error& error) {
      error.tensor(quote_for_message(name));
      throw;
    }
    add(std::move(entry));
  }

  Dtype read_dtype() {
    const std::string name = in_.string();
    if (const auto dtype = parse_dtype(name)) return *dtype;
    std::vector<std::string> known;
    for (const DtypeInfo& row : dtype_table()) known.emplace_back(row.name);
    Error error = invalid("the dtype is unknown", quote_for_message(name),
                          fmt::format("one of {}", fmt::join(known, ", ")));
    const std::string nearest = did_you_mean(name, known);
    throw nearest.empty() ? error : error.help(nearest);
  }

  i64 read_size() {
    const i64 value = in_.integer();
    if (value < 0) throw invalid("a size is negative", std::to_string(value), "0 or more");
    return value;
  }

  Shape read_shape() {
    Shape shape;
    in_.begin_array();
    while (in_.next_element()) shape.push_back(read_size());
    return shape;
  }

  void read_offsets(Entry& entry) {
    i64 count = 0;
    in_.begin_array();
    for (; in_.next_element(); ++count) {
      const i64 value = read_size();
      (count == 0 ? entry.begin : entry.end) = value;
    }
    if (count != 2) {
      throw invalid("data_offsets is no pair", fmt::format("{} values", count), "[begin, end]");
    }
    if (entry.begin > entry.end) {
      throw invalid("data_offsets end before they begin",
                    fmt::format("[{}, {}]", entry.begin, entry.end), "begin <= end");
    }
  }

  /// The bytes that dtype and shape say are the bytes that data_offsets give.
  void check_size(const Entry& entry) {
    const auto bytes = byte_size(entry.dtype, entry.shape);
    if (bytes == entry.end - entry.begin) return;
    const std::string what =
        quote_for_message(fmt::format("{} {}", to_string(entry.dtype), to_string(entry.shape)));
    if (!bytes) {
      throw invalid("dtype and shape give no whole number of bytes below 2^63", what,
                    "a size that fits");
    }
    throw invalid(
        "dtype and shape disagree with data_offsets",
        fmt::format("[{}, {}], {} bytes", entry.begin, entry.end, entry.end - entry.begin),
        fmt::format("{} bytes for {}", *bytes, what));
  }

  /// Entries whose bytes together exceed the largest end cannot be disjoint: reading on would only
  /// cost memory.
  void add(Entry entry) {
    largest_end_ = std::max(largest_end_, entry.end);
    const auto sum = checked_add(bytes_, entry.end - entry.begin);
    must_overlap_ = !sum || *sum > largest_end_;
    bytes_ = sum.value_or(bytes_);
    header_.entries.push_back(std::move(entry));
  }

  void note_unknown(const std::string& field) {
    constexpr size_t kMaxFields = 8;
    if (unknown_.size() < kMaxFields || unknown_.contains(field)) ++unknown_[field];
  }

  void warn_of_unknown_fields() {
    for (const auto& [field, count] : unknown_) {
      header_.warnings.push_back(fmt::format("unknown field '{}' in {} tensor entries is ignored",
                                             quote_for_message(field), format_count(count)));
    }
  }

  Error invalid(const std::string& message, const std::string& found, const std::string& expected) {
    return in_.error(ErrorCode::kTensorInvalid, message, found, expected);
  }

  JsonReader in_;
  Header header_;
  bool metadata_seen_ = false;
  bool must_overlap_ = false;
  i64 bytes_ = 0;
  i64 largest_end_ = 0;
  std::map<std::string, i64> unknown_;
};

std::string hash_of_header(std::string_view json) {
  std::array<std::byte, kLengthBytes> length{};
  for (size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::byte>(json.size() >> (8 * i));
  kernels::Xxh3 hash;
  hash.update(length);
  hash.update(std::as_bytes(std::span(json)));
  return hash.hex();
}

}  // namespace

Header parse_header(std::string_view json, i64 file_size, const std::string& path) {
  Header header = HeaderParser(json, path).read();
  header.data_begin = kLengthBytes + static_cast<i64>(json.size());
  header.xxh3 = hash_of_header(json);
  refuse_duplicate_names(header.entries, path);
  sort_by_offset(header.entries);
  check_tiling(header, file_size, path);
  return header;
}

}  // namespace shardtool::checkpoint::safetensors
