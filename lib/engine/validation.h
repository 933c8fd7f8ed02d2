#pragma once

#include <optional>
#include <vector>

#include "kernels/device/accelerator.h"
#include "lib/comm/communicator.h"
#include "lib/engine/diagnosis/recorded_bytes.h"
#include "lib/engine/diagnosis/verdict.h"
#include "lib/engine/side.h"
#include "lib/engine/stretch.h"
#include "lib/exec/resources.h"

namespace shardtool::engine {

struct ValidationOptions {
  std::uint64_t seed = 1;
  kernels::NumberMap map = kernels::NumberMap::kBits;
  bool with_f64 = true;  ///< also run in f64, beside the field
  /// Also run in a dtype that engines use (BF16, F16 or F32), and report the rounding error of the
  /// shards relative to the whole model's. Needs with_f64.
  std::optional<Dtype> native;
  /// Also run in f32 and bf16 with the whole model summed in the shards' order, and report whether
  /// the bits are equal.
  bool with_ordered = false;
  bool compares_bytes = false;  ///< also report whether stored bytes equal the whole model's
  /// Also compare stored bytes with the hashes of the shards' manifest; null: do not. The whole
  /// side must then be the merged shards.
  const RecordedHashes* recorded = nullptr;
  LayerShare share;           ///< of the layers to run; default: all
  i64 length = 8;             ///< number of tokens in runs in floats
  double tolerance = 1e-10;   ///< of the f64 run, relative to the root mean square
  exec::Resources resources;  ///< max_memory limits the bytes of weights that are read ahead
  /// Accelerators of this process, which share its ranks in turn; the first also computes the whole
  /// model. Empty: the CPU. The bits of the field run do not depend on them.
  std::vector<kernels::Accelerator*> accelerators = {};
  /// Use the accelerators' library for the products of the native run, in the weights' dtype if it
  /// has that. Requires that product_library() found one.
  bool uses_library = false;
};

/// Runs the whole model and its shards layer by layer on the same inputs and compares every value
/// through its placement.
///
/// In the field every layer gets new random inputs, which test every row of every table and every
/// expert. In f64 both sides of a layer get the whole model's result of the layer before, and the
/// shards' routers repeat the whole model's choices, so a difference is caused by the layer itself.
/// Order-matched runs do the same with the whole model's cut as the reference. Equal bits prove
/// that the shards compute the same; other bits are reported, and are no failure.
///
/// In the field a share of the layers finds what a run of all layers finds about them; its digests
/// and its counts of checked numbers add up with those of the other shares. In floats the first
/// layer of a share gets random numbers between -1 and 1 in place of the results of layers before
/// it. A share needs no `comm`.
///
/// Both sides are bindings of one graph. Each process of `comm` (null: one process) simulates some
/// devices of the shards, the first also the whole model; all return the same verdict. Throws
/// kUnsupported if the shards cannot be run, kInterrupted, and the errors of reading and
/// communicating.
Verdict validate(const Side& whole, const Side& shards, comm::Communicator* comm,
                 const ValidationOptions& options);

}  // namespace shardtool::engine
