#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/base/json_reader.h"
#include "lib/base/text.h"
#include "lib/format/safetensors/plain_entry.h"
#include "lib/format/safetensors/safetensors.h"
#include "lib/format/safetensors/tiling.h"

namespace shardtool::format::safetensors {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kShortestEntry = 50;  // "":{"dtype":"U8","shape":[],"data_offsets":[0,0]},

/// Reads the header's JSON. Memory grows with the entries present, never with a number in the text.
class HeaderParser {
 public:
  HeaderParser(std::string_view json, const std::string& path, const ProblemSink& report)
      : in_(json, {path, ErrorCode::kHeaderJson, kLengthBytes}, kMaxDepth), report_(report) {
    header_.entries.reserve(json.size() / kShortestEntry);
  }

  /// Reads all entries in text order, or those up to the first that must overlap.
  Header read() {
    std::string key;
    in_.begin_object();
    while (!must_overlap_ && in_.next_key(key)) {
      if (key == "__metadata__") {
        read_metadata();
      } else {
        read_entry(std::move(key));
      }
    }
    if (!must_overlap_) in_.finish();
    warn_of_unknown_fields();
    return std::move(header_);
  }

  /// True if `read` stopped at entries that must overlap.
  bool must_overlap() const { return must_overlap_; }

 private:
  void read_metadata() {
    if (std::exchange(metadata_seen_, true)) {
      throw in_.error("a key occurs twice", "__metadata__", "each key once");
    }
    if (in_.kind() == JsonKind::kNull) {
      in_.null();
      return;
    }
    std::set<std::string> keys;
    in_.begin_object();
    for (std::string key; in_.next_key(key);) {
      if (!keys.insert(key).second) {
        throw in_.error("a key occurs twice", quote_for_message(key), "each key once");
      }
      header_.metadata.emplace_back(key, in_.string());
    }
  }

  void read_entry(std::string name) {
    constexpr size_t kUsualRank = 3;  // all ranks up to this cost the allocator the same
    Entry& entry = header_.entries.emplace_back();
    entry.name = std::move(name);
    entry.shape.reserve(kUsualRank);
    if (const size_t bytes = read_plain_entry(in_.rest(), entry)) {
      in_.consume_value(bytes);
    } else {
      read_fields(entry);
    }
    count(entry);
  }

  void read_fields(Entry& entry) {
    entry.shape.clear();
    entry.begin = entry.end = 0;
    try {
      in_.object({{"dtype", [&] { read_dtype(entry); }},
                  {"shape", [&] { read_shape(entry); }},
                  {"data_offsets", [&] { read_offsets(entry); }}},
                 [this](const std::string& field) { note_unknown(field); });
      if (entry.is_valid) check_size(entry);
    } catch (Error& error) {
      error.tensor(quote_for_message(entry.name));
      throw;
    }
  }

  void read_dtype(Entry& entry) {
    const std::string name = in_.string();
    if (const auto dtype = parse_dtype(name)) {
      entry.dtype = *dtype;
      return;
    }
    std::vector<std::string> known;
    for (const DtypeInfo& row : dtype_table()) known.emplace_back(row.name);
    Error error = invalid("the dtype is unknown", quote_for_message(name),
                          fmt::format("one of {}", fmt::join(known, ", ")));
    const std::string nearest = did_you_mean(name, known);
    reject(entry, ProblemKind::kDtype, nearest.empty() ? error : error.help(nearest));
  }

  /// Marks an entry as invalid and reports it.
  void reject(Entry& entry, ProblemKind kind, Error error) {
    entry.is_valid = false;
    report_({kind, std::move(error.tensor(quote_for_message(entry.name))), ""});
  }

  i64 read_size(Entry& entry) {
    const i64 value = in_.integer();
    if (value >= 0) return value;
    reject(entry, ProblemKind::kTensorSize,
           invalid("a size is negative", std::to_string(value), "0 or more"));
    return 0;
  }

  void read_shape(Entry& entry) {
    in_.begin_array();
    while (in_.next_element()) entry.shape.push_back(read_size(entry));
  }

  void read_offsets(Entry& entry) {
    i64 count = 0;
    in_.begin_array();
    for (; in_.next_element(); ++count) {
      const i64 value = read_size(entry);
      (count == 0 ? entry.begin : entry.end) = value;
    }
    if (count != 2) {
      reject(
          entry, ProblemKind::kTensorSize,
          invalid("data_offsets is not a pair", fmt::format("{} values", count), "[begin, end]"));
    }
    if (entry.begin > entry.end) {
      reject(entry, ProblemKind::kTensorSize,
             invalid("data_offsets end before they begin",
                     fmt::format("[{}, {}]", entry.begin, entry.end), "begin <= end"));
      entry.end = entry.begin;
    }
  }

  /// Checks that the size from dtype and shape equals the size of data_offsets.
  void check_size(Entry& entry) {
    const auto bytes = byte_size(entry.dtype, entry.shape);
    if (bytes == entry.end - entry.begin) return;
    const std::string what =
        quote_for_message(fmt::format("{} {}", to_string(entry.dtype), to_string(entry.shape)));
    if (!bytes) {
      return reject(entry, ProblemKind::kTensorSize,
                    invalid("dtype and shape give no whole number of bytes below 2^63", what,
                            "a size that fits"));
    }
    reject(
        entry, ProblemKind::kTensorSize,
        invalid("dtype and shape disagree with data_offsets",
                fmt::format("[{}, {}], {} bytes", entry.begin, entry.end, entry.end - entry.begin),
                fmt::format("{} bytes for {}", *bytes, what)));
  }

  /// Counts the bytes of an entry. Entries with more bytes in all than the largest end cannot be
  /// disjoint: reading on would only cost memory.
  void count(const Entry& entry) {
    largest_end_ = std::max(largest_end_, entry.end);
    const auto sum = checked_add(bytes_, entry.end - entry.begin);
    must_overlap_ = !sum || *sum > largest_end_;
    bytes_ = sum.value_or(bytes_);
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
  const ProblemSink& report_;
  Header header_;
  bool metadata_seen_ = false;
  bool must_overlap_ = false;
  i64 bytes_ = 0;
  i64 largest_end_ = 0;
  std::map<std::string, i64> unknown_;
};

/// Reports only the first overlap: a partly read text cannot show holes or the end of the data.
ProblemSink first_overlap_only(const ProblemSink& report) {
  return [&report, seen = false](Problem problem) mutable {
    if (problem.kind != ProblemKind::kOverlap || std::exchange(seen, true)) return;
    report(std::move(problem));
  };
}

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

Header parse_header(std::string_view json, i64 file_size, const std::string& path,
                    const ProblemSink& report) {
  HeaderParser parser(json, path, report);
  Header header = parser.read();
  header.data_begin = kLengthBytes + static_cast<i64>(json.size());
  header.xxh3 = hash_of_header(json);
  report_duplicate_names(header.entries, path, report);
  sort_by_offset(header.entries);
  check_tiling(header, file_size, path,
               parser.must_overlap() ? first_overlap_only(report) : report);
  std::erase_if(header.entries, [](const Entry& entry) { return !entry.is_valid; });
  return header;
}

}  // namespace shardtool::format::safetensors
