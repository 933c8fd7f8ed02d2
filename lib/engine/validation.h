#pragma once

#include <optional>
#include <vector>

#include "kernels/device/accelerator.h"
#include "lib/comm/communicator.h"
#include "lib/engine/diagnosis/recorded_bytes.h"
#include "lib/engine/diagnosis/verdict.h"
#include "lib/engine/side.h"
#include "lib/exec/resources.h"

namespace shardtool::engine {

struct ValidationOptions {
  std::uint64_t seed = 1;
  kernels::NumberMap map = kernels::NumberMap::kBits;
  bool with_f64 = true;  ///< besides the field
  /// Also in a type of engines: a report of how much more the shards round than the whole model
  /// does. Needs with_f64. BF16, F16 or F32.
  std::optional<Dtype> native;
  /// Also in f32 and bf16 with the whole model summed as the shards sum: a report of bits.
  bool with_ordered = false;
  bool compares_bytes = false;  ///< also whether stored bytes are the whole model's: a report
  /// Also whether they are those of the shards' manifest; null: it is not looked at. The whole
  /// side must be the shards, merged.
  const RecordedHashes* recorded = nullptr;
  i64 length = 8;             ///< tokens of the runs in floats
  double tolerance = 1e-10;   ///< of the f64 run, times the root mean square
  exec::Resources resources;  ///< memory: bytes of weights that are read ahead
  i64 stored_bytes = 0;       ///< about what is read: the total of the progress
  /// Computes the products; null: the CPU. All else is the CPU's, and so are the field's bits.
  kernels::Accelerator* accelerator = nullptr;
  /// Those of the native run by the accelerator's library, in the weights' type, where it has the
  /// type. Requires that product_library() found one.
  bool uses_library = false;
};

/// Runs the whole model and its shards layer by layer on the same inputs and compares every value
/// through its placement.
///
/// In the field every layer gets fresh random inputs (every row of every table, every expert). In
/// f64 it gets what the whole model made of the layer before, and the shards' routers choose as the
/// whole model's did. So a difference is one of its own layer. Order-matched runs do as f64 does,
/// with the whole model's cut in its place: equal bits prove that the shards compute the same,
/// others are told, and do not fail.
///
/// The sides are two bindings of one graph. Every process of `comm` (null: one) plays some devices
/// of the shards, the first also the whole model; all get the same verdict. Throws kUnsupported
/// where the shards cannot be computed with, kInterrupted, and what reading and moving throw.
Verdict validate(const Side& whole, const Side& shards, comm::Communicator* comm,
                 const ValidationOptions& options);

}  // namespace shardtool::engine
