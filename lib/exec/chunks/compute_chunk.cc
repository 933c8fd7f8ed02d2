#include "lib/exec/chunks/compute_chunk.h"

#include <algorithm>

#include "lib/exec/chunks/cast_chunk.h"

namespace shardtool::exec {
namespace {

/// Joins the runs of a placement that lie below each other to boxes.
class Boxes {
 public:
  Boxes(i64 columns, i64 width, std::byte* memory)
      : columns_(columns), width_(width), memory_(memory) {}

  /// Adds elements [first, first + n) of the tensor, which are `at` bytes into the memory: whole
  /// rows, or a part of one.
  void add(i64 at, i64 first, i64 n) {
    ComputedBox box;
    box.row = first / columns_;
    box.column = first % columns_;
    box.columns = std::min(n, columns_);
    box.rows = n / box.columns;
    box.memory = memory_ + at;
    box.stride = box.columns * width_;
    if (!boxes_.empty() && extend(boxes_.back(), box)) return;
    boxes_.push_back(box);
  }

  const std::vector<ComputedBox>& all() const { return boxes_; }

 private:
  static bool extend(ComputedBox& box, const ComputedBox& next) {
    const bool is_below =
        next.row == box.row + box.rows && next.column == box.column && next.columns == box.columns;
    const i64 stride = (next.memory - box.memory) / box.rows;
    const bool fits = box.rows == 1 || stride == box.stride;
    if (!is_below || !fits || next.rows != 1 || stride * box.rows != next.memory - box.memory)
      return false;
    box.stride = stride;
    ++box.rows;
    return true;
  }

  i64 columns_, width_;
  std::byte* memory_;
  std::vector<ComputedBox> boxes_;
};

}  // namespace

ComputedReport& ComputedReport::operator+=(const ComputedReport& other) {
  counts += other.counts;
  digests.resize(std::max(digests.size(), other.digests.size()));
  for (size_t i = 0; i < other.digests.size(); ++i) digests[i] ^= other.digests[i];
  return *this;
}

ComputedReport compute_input(const TensorMove& move, const Chunk& chunk, int input,
                             std::byte* memory, std::span<const SourceFile> files) {
  const i64 width = bits(move.dtype) / 8;
  Boxes boxes(std::max<i64>(move.shape.back(), 1), width, memory);
  for (const ChunkPlace& place : chunk.input_places) {
    if (place.range != input || place.place.run == 0) continue;
    for_each_run(place.place,
                 [&](i64 src, i64 dst) { boxes.add(src, dst / width, place.place.run / width); });
  }
  ComputedReport report;
  for (const ComputedBox& box : boxes.all()) move.computed->compute(box, files, report);
  return report;
}

}  // namespace shardtool::exec
