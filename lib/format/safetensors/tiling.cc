#include "lib/format/safetensors/tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/names.h"

namespace shardtool::format::safetensors {
namespace {

std::string offsets(const Entry& entry) {
  return fmt::format("[{}, {})", entry.begin, entry.end);
}

Error misplaced(const Entry& entry, i64 expected_begin, const Entry* before,
                const std::string& path) {
  const bool overlap = entry.begin < expected_begin;
  const std::string neighbour =
      before == nullptr ? "the data's begin"
                        : fmt::format("'{}' {}", quote_for_message(before->name), offsets(*before));
  return Error(ErrorCode::kTensorInvalid,
               overlap ? fmt::format("a tensor overlaps {}", neighbour)
                       : fmt::format("there is a hole between {} and a tensor", neighbour))
      .at({path, 0, 0, ""})
      .tensor(quote_for_message(entry.name))
      .note("found", "data_offsets " + offsets(entry))
      .note("expected", fmt::format("begin {}", expected_begin));
}

/// Checks that the data is as long as the tensors describe.
void check_end(Header& header, i64 described, i64 file_size, const std::string& path,
               const ProblemSink& report) {
  const i64 data_bytes = file_size - header.data_begin;
  if (described == data_bytes) return;
  Error error(ErrorCode::kMalformed, described > data_bytes ? "the file ends before its data does"
                                                            : "something follows the data");
  error.at({path, 0, 0, ""});
  error.note("found", fmt::format("{} bytes of data", data_bytes));
  error.note("expected", fmt::format("{} bytes of data", described));
  if (described < data_bytes) {
    error.help("a safetensors file ends with its last tensor");
    return report({ProblemKind::kTrailingBytes, std::move(error), ""});
  }
  const auto first = std::find_if(header.entries.begin(), header.entries.end(),
                                  [data_bytes](const Entry& e) { return e.end > data_bytes; });
  if (first != header.entries.end()) error.tensor(quote_for_message(first->name));
  report({ProblemKind::kTruncated, error.help("the file is truncated: fetch it again"), ""});
  for (Entry& entry : header.entries) entry.is_valid &= entry.end <= data_bytes;
}

}  // namespace

void report_duplicate_names(std::span<const Entry> entries, const std::string& path,
                            const ProblemSink& report) {
  std::vector<const std::string*> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(&entry.name);
  for (const std::string* twice : find_duplicates(std::move(names))) {
    report({ProblemKind::kTensorTwice,
            Error(ErrorCode::kTensorInvalid, "a tensor occurs twice in the header")
                .at({path, 0, 0, ""})
                .tensor(quote_for_message(*twice))
                .note("expected", "each name once"),
            ""});
  }
}

void sort_by_offset(std::vector<Entry>& entries) {
  const auto before = [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  };
  if (!std::is_sorted(entries.begin(), entries.end(), before)) {
    std::sort(entries.begin(), entries.end(), before);
  }
}

void check_tiling(Header& header, i64 file_size, const std::string& path,
                  const ProblemSink& report) {
  const Entry* before = nullptr;  // entry with the largest end so far
  for (const Entry& entry : header.entries) {
    const i64 expected_begin = before == nullptr ? 0 : before->end;
    if (entry.begin != expected_begin) {
      const bool overlap = entry.begin < expected_begin;
      report({overlap ? ProblemKind::kOverlap : ProblemKind::kHole,
              misplaced(entry, expected_begin, before, path), ""});
    }
    if (before == nullptr || entry.end >= before->end) before = &entry;
  }
  check_end(header, before == nullptr ? 0 : before->end, file_size, path, report);
}

}  // namespace shardtool::format::safetensors
