#pragma once

#include <span>
#include <string>
#include <vector>

#include "shardtool/checkpoint/safetensors/safetensors.h"

namespace shardtool::checkpoint::safetensors {

/// Throws kTensorInvalid when two entries have one name. O(n log n) whatever the names are.
void refuse_duplicate_names(std::span<const Entry> entries, const std::string& path);

/// Ascending by begin, then end, then name: the same for every order in the text.
void sort_by_offset(std::vector<Entry>& entries);

/// Requires sorted entries. Throws kTensorInvalid at a hole or an overlap and kMalformed when the
/// data ends before or after the end of the file:
///
///     | 8 | header | A | B |C|    D    |     each begins where the one before ends
void check_tiling(const Header& header, i64 file_size, const std::string& path);

}  // namespace shardtool::checkpoint::safetensors
