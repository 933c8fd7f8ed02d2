#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/tensor_spec.h"
#include "lib/check/findings.h"
#include "lib/exec/data_file.h"
#include "lib/exec/move.h"
#include "lib/exec/shifted.h"
#include "lib/exec/stream.h"

namespace shardtool::check {

/// A tensor whose data is read: the holders that can be, and what is known of them.
struct DataTensor {
  TensorSpec spec;
  exec::Side side;
  std::vector<i64> ranks;               ///< of the holders; empty for a whole checkpoint
  std::vector<kernels::Hash128> xxh3;   ///< of the holders' bytes, from the manifest; may be empty
  std::optional<std::uint64_t> digest;  ///< of the whole tensor, from the manifest
  std::vector<index::ValueShift> shifts = {};  ///< of the holders; empty: plain values
};

/// A file that data is read from.
struct DataFile {
  exec::SurveyedFile file;  ///< to open
  std::string shown;        ///< for findings
};

/// ST07: reads every holder's bytes once, in the order in which they lie, within the memory budget
/// of the options, and counts NaN, infinities and zeros; holds hashes and digests against the
/// manifest and replicas against each other. Returns the bytes read. Throws what exec::stream
/// throws.
i64 check_data(std::span<const DataTensor> tensors, std::span<const DataFile> files,
               const exec::Resources& resources, Findings& findings);

/// Bytes of one holder of a tensor, and of all.
i64 holder_bytes(const DataTensor& tensor, int holder);
i64 stored_bytes(const DataTensor& tensor);

}  // namespace shardtool::check
