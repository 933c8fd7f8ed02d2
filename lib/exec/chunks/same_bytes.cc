#include "lib/exec/chunks/same_bytes.h"

#include <algorithm>

namespace shardtool::exec {
namespace {

/// No limit, so that a chunk is as long as nothing changes.
constexpr ChunkLimits kUnlimited{i64{1} << 50, i64{1} << 50};

/// Joins stretches that follow each other on both sides.
void add(std::vector<SameBytes>& all, const SameBytes& next) {
  if (!all.empty()) {
    SameBytes& last = all.back();
    const bool follows = last.to.file == next.to.file && last.from.file == next.from.file &&
                         last.to.offset + last.bytes == next.to.offset &&
                         last.from.offset + last.bytes == next.from.offset;
    if (follows) return static_cast<void>(last.bytes += next.bytes);
  }
  all.push_back(next);
}

}  // namespace

std::optional<Slot> origin_of(const TensorMove& move, const Chunk& chunk, int output) {
  if (move.cast_to || move.computed) return std::nullopt;
  for (const ChunkCopy& copy : chunk.copies) {
    if (copy.output != output) continue;
    const bool is_all = copy.copy.loops.empty() &&
                        copy.copy.run == chunk.outputs[static_cast<size_t>(output)].bytes;
    if (!is_all) return std::nullopt;
    const ChunkInput& input = chunk.inputs[static_cast<size_t>(copy.input)];
    Slot at = move.from.slots[static_cast<size_t>(input.holder)];
    at.offset += input.offset + copy.copy.src;
    return at;
  }
  return std::nullopt;
}

std::optional<std::vector<SameBytes>> same_bytes(const TensorMove& move, i64 least) {
  if (move.cast_to || move.computed) return std::nullopt;
  i64 wanted = 0;
  for (int h = 0; h < move.to.holders->size(); ++h) {
    wanted += holder_bytes(*move.to.holders, h, move.dtype);
  }
  const ChunkPlan plan(move, kUnlimited);
  if (plan.chunks() * least > wanted) return std::nullopt;
  std::vector<SameBytes> stretches;
  i64 found = 0;
  for (ChunkPlan::Position at; plan.next(at);) {
    const Chunk chunk = plan.chunk(at);
    for (size_t o = 0; o < chunk.outputs.size(); ++o) {
      const auto origin = origin_of(move, chunk, static_cast<int>(o));
      if (!origin) return std::nullopt;
      const ChunkOutput& output = chunk.outputs[o];
      for (const ChunkTarget& target : output.targets) {
        Slot to = move.to.slots[static_cast<size_t>(target.holder)];
        to.offset += target.offset;
        stretches.push_back({*origin, to, output.bytes});
        found += output.bytes;
      }
    }
  }
  if (found != wanted) return std::nullopt;  // the rest is padding
  std::ranges::sort(stretches,
                    [](const SameBytes& a, const SameBytes& b) { return lies_before(a.to, b.to); });
  std::vector<SameBytes> joined;
  for (const SameBytes& stretch : stretches) add(joined, stretch);
  return joined;
}

}  // namespace shardtool::exec
