#include <cstring>
#include <span>

#include "kernels/strided_copy/strided_copy.h"

namespace shardtool::kernels {
namespace {

using index::Loop;

/// Copies the loop.count runs of the innermost loop.
using CopyRuns = void (*)(const Loop& loop, size_t run, const std::byte* src, std::byte* dst);

void copy_runs(const Loop& loop, size_t run, const std::byte* src, std::byte* dst) {
  for (i64 i = 0; i < loop.count; ++i) {
    std::memcpy(dst + i * loop.dst_stride, src + i * loop.src_stride, run);
  }
}

/// The same for a run length known at compile time: one load and one store instead of a call.
template <size_t kRun>
void copy_short_runs(const Loop& loop, size_t, const std::byte* src, std::byte* dst) {
  copy_runs(loop, kRun, src, dst);
}

CopyRuns copy_runs_of(i64 run) {
  switch (run) {
    case 1:
      return copy_short_runs<1>;
    case 2:
      return copy_short_runs<2>;
    case 4:
      return copy_short_runs<4>;
    case 8:
      return copy_short_runs<8>;
    case 16:
      return copy_short_runs<16>;
    case 32:
      return copy_short_runs<32>;
    case 64:
      return copy_short_runs<64>;
    default:
      return copy_runs;
  }
}

struct Copier {
  CopyRuns copy_runs;
  size_t run;

  void copy(std::span<const Loop> loops, const std::byte* src, std::byte* dst) const {
    const Loop& loop = loops.front();
    if (loops.size() == 1) return copy_runs(loop, run, src, dst);
    for (i64 i = 0; i < loop.count; ++i) {
      copy(loops.subspan(1), src + i * loop.src_stride, dst + i * loop.dst_stride);
    }
  }
};

}  // namespace

void strided_copy(const index::StridedCopy& copy, const std::byte* src, std::byte* dst) {
  const auto run = static_cast<size_t>(copy.run);
  if (run == 0) return;  // empty box; the buffers may be null
  if (copy.loops.empty()) {
    std::memcpy(dst + copy.dst, src + copy.src, run);
    return;
  }
  const Copier copier{copy_runs_of(copy.run), run};
  copier.copy(copy.loops, src + copy.src, dst + copy.dst);
}

}  // namespace shardtool::kernels
