#include "lib/exec/chunks/chunk_plans.h"

#include "lib/base/error.h"
#include "lib/exec/chunks/chunk_reader.h"

namespace shardtool::exec {

ChunkPlans::Entry::Entry(const TensorMove& move, ChunkLimits limits)
    : plan(move, limits), chunks(plan.chunks()) {
  for (ChunkPlan::Position at; plan.next(at);) {
    together.push_back(plan.chunk(at));
    arena_bytes += ChunkReader::arena_bytes(together.back());
    for (const ChunkInput& input : together.back().inputs) input_bytes += input.bytes;
    if (arena_bytes <= limits.arena_bytes && input_bytes <= limits.input_bytes) continue;
    together = {};
    return;
  }
}

const ChunkPlans::Entry& ChunkPlans::of(const TensorMove& move) {
  const Layouts layouts{move.from.holders.get(), move.to.holders.get(), move.dtype,
                        move.result_dtype(), move.computed ? move.computed->scratch_bits() : 0};
  const auto found = entries_.find(layouts);
  if (found != entries_.end()) return found->second;
  try {
    return entries_.try_emplace(layouts, move, limits_).first->second;
  } catch (Error& error) {
    throw error.tensor(move.name);
  }
}

}  // namespace shardtool::exec
