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

struct CheckedModel;

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

/// ST07: reads every holder's bytes once, in file order, within the memory budget of the options,
/// and counts NaN, infinities and zeros; compares hashes and digests with the manifest and replicas
/// with each other, and the records of torch's zip archives with their CRC-32. Keeps vectors of
/// integers for check_packed_numbers, in a quarter of the budget. Returns the bytes of the tensors
/// in their files (StoredBytes). Throws the errors of exec::stream.
i64 check_data(std::span<const DataTensor> tensors, std::span<const DataFile> files,
               const exec::Resources& resources, Findings& findings, exec::KeptRanges& kept);

/// ST0711: reads the stored group of every input of packed weights (g_idx) and compares it with the
/// number of groups and, without activation order, with the input's own group. ST0413: reads the
/// recorded shape of packed weights (weight_shape) and compares it with the codes, which may be
/// more in the last word of a row, and with the inputs that the model reads. Skips tensors that are
/// not in `tensors`, and those whose shards do not make one vector, which other rules find. Reads
/// what is not kept. Throws the errors of reading.
void check_packed_numbers(const CheckedModel& model, std::span<const DataTensor> tensors,
                          std::span<const DataFile> files, const exec::KeptRanges& kept,
                          Findings& findings);

/// Returns the values of a tensor of integers in its shards, less the shifts of the holders; empty
/// shifts: as they are stored. Reads holders that are not kept. Throws the errors of
/// exec::load_shifted.
std::vector<i64> logical_values(const DataTensor& tensor, std::span<const index::ValueShift> shifts,
                                std::span<const DataFile> files, const exec::KeptRanges& kept);

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
