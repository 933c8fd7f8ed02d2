#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/exec/copy.h"
#include "lib/exec/data_file.h"
#include "lib/exec/move.h"
#include "lib/index/value_shift.h"

namespace shardtool::exec {

/// A small vector (rank 1; I32, I64, F16, BF16 or F32; at most kMaxShiftedBytes) whose holders have
/// shifted values.
struct ShiftedMove {
  TensorMove move;
  std::vector<index::ValueShift> from;  ///< per source holder; empty: none
  std::vector<index::ValueShift> to;    ///< per destination holder; empty: none
};

inline constexpr i64 kMaxShiftedBytes = 16 << 20;

/// The logical values of a side, in order; of floating-point numbers, their bits. Throws
/// kDataMismatch when two holders differ, kCoverage when some value is nowhere, kUnsupported for
/// another rank or dtype, kLimit above the size.
std::vector<i64> load_shifted(const std::string& name, Dtype dtype, const Shape& shape,
                              const Side& side, std::span<const index::ValueShift> shifts,
                              std::span<const SourceFile> sources);

/// Makes the logical values of what a holder stores from its local element `first` on; those of
/// floating-point numbers stay.
void restore_values(const std::string& name, Dtype dtype, const index::ValueShift& shift, i64 first,
                    std::span<std::byte> bytes);

/// The digest of logical values, that of the whole tensor's bytes.
std::uint64_t digest_of_values(const std::vector<i64>& values, Dtype dtype);

/// Copies the vector; the digest is that of the logical values. Throws what load_shifted and
/// writing throw, and kDataMismatch for the digest that the move expects, and for a stored value
/// out of its range.
CopiedTensor copy_shifted(const ShiftedMove& move, std::span<const SourceFile> sources,
                          std::span<const TargetFile> targets);

}  // namespace shardtool::exec
