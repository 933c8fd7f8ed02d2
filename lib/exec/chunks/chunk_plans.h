#pragma once

#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "lib/exec/chunks/chunk_plan.h"

namespace shardtool::exec {

/// Chunk plans of a run: tensors of one layout and element types share one. Not thread-safe;
/// returned references are valid as long as this object.
class ChunkPlans {
 public:
  struct Entry {
    ChunkPlan plan;
    i64 chunks;  ///< of the plan
    /// All chunks of the tensor if they fit the limits together; otherwise empty.
    std::vector<Chunk> together;
    i64 arena_bytes = 0;  ///< that the chunks in `together` take
    i64 input_bytes = 0;

    Entry(const TensorMove& move, ChunkLimits limits);
  };

  explicit ChunkPlans(ChunkLimits limits) : limits_(limits) {}

  /// Requires check_move(move). Throws the errors of ChunkPlan, with the tensor's name.
  const Entry& of(const TensorMove& move);

 private:
  using Layouts = std::tuple<const index::HolderSet*, const index::HolderSet*, Dtype, Dtype, int>;

  ChunkLimits limits_;
  std::map<Layouts, Entry> entries_;
};

}  // namespace shardtool::exec
