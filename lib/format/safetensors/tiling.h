#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/format/safetensors/safetensors.h"

namespace shardtool::format::safetensors {

/// Reports kTensorInvalid for entries with duplicate names. O(n log n) for any names.
void report_duplicate_names(std::span<const Entry> entries, const std::string& path,
                            const ProblemSink& report);

/// Sorts by begin, then end, then name: the same result for every order in the text.
void sort_by_offset(std::vector<Entry>& entries);

/// Requires sorted entries. Reports kTensorInvalid at a hole or an overlap and kMalformed when the
/// data ends before or after the end of the file; entries that end outside the file become invalid:
///
///     | 8 | header | A | B |C|    D    |     each begins at the end of the previous one
void check_tiling(Header& header, i64 file_size, const std::string& path,
                  const ProblemSink& report);

}  // namespace shardtool::format::safetensors
