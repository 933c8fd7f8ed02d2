#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/tensor_spec.h"
#include "lib/check/findings.h"
#include "lib/exec/files/data_file.h"
#include "lib/exec/files/kept_ranges.h"
#include "lib/exec/move.h"
#include "lib/exec/shifted.h"
#include "lib/exec/stream.h"

namespace shardtool::check {

/// Tensor whose data is read: its readable holders, and their known hashes.
struct DataTensor {
  TensorSpec spec;
  exec::MoveSide side;
  std::vector<i64> ranks;               ///< of the holders; empty for a whole checkpoint
  std::vector<kernels::Hash128> xxh3;   ///< of the holders' bytes, from the manifest; may be empty
  std::optional<std::uint64_t> digest;  ///< of the whole tensor, from the manifest
  std::vector<index::ValueShift> shifts = {};  ///< of the holders; empty: plain values
  bool may_be_plain = false;                   ///< the shifts are possible, and plain values, too
};

/// File from which data is read.
struct DataFile {
  exec::SurveyedFile file;  ///< file to open
  std::string shown;        ///< path for findings
};

/// The result of reading data.
struct CheckedData {
  i64 bytes = 0;          ///< of the tensors in their files (StoredBytes)
  exec::KeptRanges kept;  ///< vectors of integers, for check_packed_numbers
};

/// ST07: reads every holder's bytes once, in file order, within the memory budget of the options,
/// and counts NaN, infinities and zeros; compares hashes and digests with the manifest and replicas
/// with each other, and the records of torch's zip archives with their CRC-32. Keeps vectors of
/// integers in a quarter of the budget. Throws the errors of exec::stream.
CheckedData check_data(std::span<const DataTensor> tensors, std::span<const DataFile> files,
                       const exec::Resources& resources, Findings& findings);

/// True if the holder has padding or copies in addition to elements of the tensor.
bool has_padding(const DataTensor& tensor, int holder);

/// Bytes of one holder of a tensor, and of all holders.
i64 holder_bytes(const DataTensor& tensor, int holder);
i64 stored_bytes(const DataTensor& tensor);

/// Counts the bytes of tensors in their files. A place that several of them have, such as parts of
/// a fused tensor, is counted once.
class StoredBytes {
 public:
  /// Adds the holders of a tensor.
  void add(const DataTensor& tensor);
  i64 total() const { return total_; }

 private:
  std::map<std::pair<int, i64>, i64> slots_;  ///< bytes at a file's offset
  i64 total_ = 0;
};

}  // namespace shardtool::check
