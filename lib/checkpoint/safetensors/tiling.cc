#include "shardtool/checkpoint/safetensors/tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "shardtool/base/error.h"
#include "shardtool/base/text.h"
#include "shardtool/checkpoint/names.h"

namespace shardtool::checkpoint::safetensors {
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

/// The data is as long as the tensors say.
void check_end(const Header& header, i64 file_size, const std::string& path) {
  const i64 data_bytes = file_size - header.data_begin;
  const i64 described = header.entries.empty() ? 0 : header.entries.back().end;
  if (described == data_bytes) return;
  Error error(ErrorCode::kMalformed, described > data_bytes ? "the file ends before its data does"
                                                            : "something follows the data");
  error.at({path, 0, 0, ""});
  error.note("found", fmt::format("{} bytes of data", data_bytes));
  error.note("expected", fmt::format("{} bytes of data", described));
  if (described < data_bytes) throw error.help("a safetensors file ends with its last tensor");
  const auto first = std::find_if(header.entries.begin(), header.entries.end(),
                                  [data_bytes](const Entry& e) { return e.end > data_bytes; });
  if (first != header.entries.end()) error.tensor(quote_for_message(first->name));
  throw error.help("the file is truncated: fetch it again");
}

}  // namespace

void refuse_duplicate_names(std::span<const Entry> entries, const std::string& path) {
  std::vector<const std::string*> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(&entry.name);
  const std::string* twice = find_duplicate(std::move(names));
  if (twice == nullptr) return;
  throw Error(ErrorCode::kTensorInvalid, "a tensor stands twice in the header")
      .at({path, 0, 0, ""})
      .tensor(quote_for_message(*twice))
      .note("expected", "each name once");
}

void sort_by_offset(std::vector<Entry>& entries) {
  const auto before = [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  };
  if (!std::is_sorted(entries.begin(), entries.end(), before)) {
    std::sort(entries.begin(), entries.end(), before);
  }
}

void check_tiling(const Header& header, i64 file_size, const std::string& path) {
  const Entry* before = nullptr;
  for (const Entry& entry : header.entries) {
    const i64 expected_begin = before == nullptr ? 0 : before->end;
    if (entry.begin != expected_begin) throw misplaced(entry, expected_begin, before, path);
    before = &entry;
  }
  check_end(header, file_size, path);
}

}  // namespace shardtool::checkpoint::safetensors
