#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/exec/copy.h"
#include "lib/exec/files/data_file.h"
#include "lib/exec/move.h"
#include "lib/index/value_shift.h"

namespace shardtool::exec {

/// Small vector (rank 1; I32, I64, F16, BF16 or F32; at most kMaxShiftedBytes) whose holders have
/// shifted values.
struct ShiftedMove {
  TensorMove move;
  std::vector<index::ValueShift> from;  ///< per source holder; empty: no shifts
  std::vector<index::ValueShift> to;    ///< per destination holder; empty: no shifts
};

inline constexpr i64 kMaxShiftedBytes = 16 << 20;

/// Loads the logical values of a side by ascending index; of floating-point numbers the bits.
/// Throws kDataMismatch when two holders differ or an integer leaves its dtype, kCoverage when a
/// value has no holder, kUnsupported for another rank or dtype, kLimit above the size.
std::vector<i64> load_shifted(const std::string& name, Dtype dtype, const Shape& shape,
                              const MoveSide& side, std::span<const index::ValueShift> shifts,
                              std::span<const SourceFile> sources);

/// Returns so many bytes of a holder of a vector, which are all that it has.
using HolderBytes = std::function<std::vector<std::byte>(int holder, i64 bytes)>;

/// Same, of bytes that the caller has.
std::vector<i64> load_shifted(const std::string& name, Dtype dtype, const Shape& shape,
                              const index::HolderSet& holders,
                              std::span<const index::ValueShift> shifts,
                              const HolderBytes& bytes_of);

/// Converts a holder's stored values, beginning with its local element `first`, to logical ones;
/// floating-point numbers stay unchanged. Throws kDataMismatch for an integer that leaves its
/// dtype.
void restore_values(const std::string& name, Dtype dtype, const index::ValueShift& shift, i64 first,
                    std::span<std::byte> bytes);

/// Casts floating-point numbers, given by their bits (kernels::cast).
std::vector<i64> cast_values(const std::string& name, const std::vector<i64>& values, Dtype from,
                             Dtype to, kernels::CastCounts& counts);

/// Digest of the logical values, equal to that of the whole tensor's bytes.
std::uint64_t digest_of_values(const std::vector<i64>& values, Dtype dtype);

/// Copies the vector, after the move's cast; the digest is that of the logical values. Without
/// targets it writes nothing, and tells the hashes that would be written. Throws the errors of
/// load_shifted and of writing, and kDataMismatch for another digest than the move expects, and for
/// a stored value out of its range.
CopiedTensor copy_shifted(const ShiftedMove& move, std::span<const SourceFile> sources,
                          std::span<const TargetFile> targets);

}  // namespace shardtool::exec
