#include "lib/exec/chunks/cast_chunk.h"

#include <algorithm>
#include <vector>

namespace shardtool::exec {
namespace {

void visit_runs(const index::StridedCopy& copy, size_t loop, i64 src, i64 dst,
                const std::function<void(i64, i64)>& visit) {
  if (loop == copy.loops.size()) return visit(src, dst);
  const index::Loop& l = copy.loops[loop];
  for (i64 i = 0; i < l.count; ++i) {
    visit_runs(copy, loop + 1, src + i * l.src_stride, dst + i * l.dst_stride, visit);
  }
}

/// Counts of an output's elements that repeat those of an earlier output.
kernels::CastCounts counts_of_repeated(const FilledChunk& filled, size_t output) {
  const TensorMove& move = *filled.move;
  const i64 width = bits(move.dtype) / 8;
  std::vector<std::byte> results;
  kernels::CastCounts counts;
  for (const ChunkPlace& place : filled.chunk->output_places) {
    if (place.range != static_cast<int>(output) || place.counts) continue;
    const i64 n = place.place.run / width;
    results.resize(static_cast<size_t>(n * bits(*move.cast_to) / 8));
    for_each_run(place.place, [&](i64 src, i64) {
      counts +=
          kernels::cast(move.dtype, *move.cast_to, filled.outputs[output] + src, n, results.data());
    });
  }
  return counts;
}

bool counts_all(const FilledChunk& filled, size_t output, bool counts) {
  return std::ranges::all_of(filled.chunk->output_places, [&](const ChunkPlace& place) {
    return place.range != static_cast<int>(output) || place.counts == counts;
  });
}

}  // namespace

void for_each_run(const index::StridedCopy& copy, const std::function<void(i64, i64)>& visit) {
  visit_runs(copy, 0, copy.src, copy.dst, visit);
}

kernels::CastCounts cast_outputs(const FilledChunk& filled) {
  const TensorMove& move = *filled.move;
  kernels::CastCounts counts;
  if (!move.cast_to) return counts;
  const i64 width = bits(move.dtype) / 8;
  for (size_t i = 0; i < filled.outputs.size(); ++i) {
    const bool is_repeated = counts_all(filled, i, false);
    if (!is_repeated && !counts_all(filled, i, true)) counts -= counts_of_repeated(filled, i);
    const kernels::CastCounts all =
        kernels::cast(move.dtype, *move.cast_to, filled.outputs[i],
                      filled.chunk->outputs[i].bytes / width, filled.results[i]);
    if (!is_repeated) counts += all;
  }
  counts.values = filled.chunk->bytes / width;  // without padding
  return counts;
}

index::StridedCopy result_place(const index::StridedCopy& place, const TensorMove& move) {
  const i64 from = bits(move.dtype);
  const i64 to = bits(move.result_dtype());
  index::StridedCopy scaled = place;
  for (i64* bytes : {&scaled.src, &scaled.dst, &scaled.run}) *bytes = *bytes * to / from;
  for (index::Loop& loop : scaled.loops) {
    loop.src_stride = loop.src_stride * to / from;
    loop.dst_stride = loop.dst_stride * to / from;
  }
  return scaled;
}

}  // namespace shardtool::exec
