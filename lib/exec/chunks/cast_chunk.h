#pragma once

#include <functional>

#include "kernels/cast/cast.h"
#include "lib/exec/chunks/chunk_reader.h"
#include "lib/index/strided_copy.h"

namespace shardtool::exec {

/// Calls visit(src, dst) for every run of a strided copy.
void for_each_run(const index::StridedCopy& copy, const std::function<void(i64, i64)>& visit);

/// Converts all outputs of a chunk to the destinations' element type (FilledChunk::results), in
/// place: afterwards `outputs` is undefined. Does nothing for a move without a cast. Returns the
/// counts over the needed elements, each once.
kernels::CastCounts cast_outputs(const FilledChunk& filled);

/// The same placement in the destinations' element type.
index::StridedCopy result_place(const index::StridedCopy& place, const TensorMove& move);

}  // namespace shardtool::exec
