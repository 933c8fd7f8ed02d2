#pragma once

#include <optional>
#include <span>
#include <string>

#include "lib/check/data/data.h"

namespace shardtool::check {

/// A file with the bytes of another device's file.
struct CopiedFile {
  size_t file = 0;     ///< index into the files, as Slot::file
  size_t of = 0;       ///< the other file, with a smaller index
  std::string tensor;  ///< one that the two files hold different parts of
};

/// Returns the first file that is a copy of an earlier one, by samples: two files whose tensors lie
/// at the same places have equal bytes in all of which they hold different parts, or different
/// tensors. A sample is the first 4 KiB of a part, or all of it; one whose bytes are all equal
/// proves nothing. Files that are no copies usually differ in their first sample. Returns nullopt
/// if there is none. Throws the errors of reading.
std::optional<CopiedFile> copied_file(std::span<const DataTensor> tensors,
                                      std::span<const exec::SurveyedFile> files);

}  // namespace shardtool::check
