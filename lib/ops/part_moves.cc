#include "lib/ops/part_moves.h"

#include <algorithm>
#include <utility>

#include "kernels/field/field.h"

namespace shardtool::ops {
namespace {

/// Number of copies above which features are moved on the host.
constexpr size_t kMostCopies = 64;

/// Returns runs of positions, without those of -1.
std::vector<FeatureRun> runs_of(const std::vector<i64>& positions) {
  std::vector<FeatureRun> runs;
  for (i64 i = 0; i < std::ssize(positions); ++i) {
    const i64 from = positions[static_cast<size_t>(i)];
    if (from < 0) continue;
    const bool goes_on = !runs.empty() && runs.back().to + runs.back().size == i &&
                         runs.back().from + runs.back().size == from;
    if (!goes_on) runs.push_back({from, i, 0});
    ++runs.back().size;
  }
  return runs;
}

/// Adds a copy to the one before it, if both have one size, and the distance goes on. Returns false
/// if not.
bool joins(const index::StridedCopy& next, index::StridedCopy& last) {
  if (last.run != next.run) return false;
  if (last.loops.size() == next.loops.size()) {
    const index::Loop step{2, next.src - last.src, next.dst - last.dst};
    if (step.src_stride < 0 || step.dst_stride < last.run) return false;
    last.loops.push_back(step);
    return true;
  }
  index::Loop& step = last.loops.back();
  const bool goes_on = next.src == last.src + step.count * step.src_stride &&
                       next.dst == last.dst + step.count * step.dst_stride;
  if (goes_on) ++step.count;
  return goes_on;
}

}  // namespace

std::vector<index::StridedCopy> copies_of(std::span<const FeatureRun> runs, i64 bytes,
                                          const index::Loop& tokens) {
  std::vector<index::StridedCopy> copies;
  for (const FeatureRun& run : runs) {
    if (run.size == 0) continue;
    index::StridedCopy copy{run.from * bytes, run.to * bytes, run.size * bytes, {tokens}};
    if (copies.empty() || !joins(copy, copies.back())) copies.push_back(std::move(copy));
  }
  return copies;
}

template <class N>
void copy_runs(kernels::Workbench& bench, const Part<N>& from, std::span<const FeatureRun> runs,
               i64 tokens, Part<N>& to) {
  constexpr auto kSize = static_cast<i64>(sizeof(N));
  std::vector<index::StridedCopy> copies;
  if (bench.is_parallel())
    copies = copies_of(runs, kSize, {tokens, from.width() * kSize, to.width() * kSize});
  if (bench.is_parallel() && copies.size() <= kMostCopies) {
    const auto* const source = reinterpret_cast<const std::byte*>(bench.in(from.data));
    auto* const target = reinterpret_cast<std::byte*>(bench.in_out(to.data));
    for (index::StridedCopy& copy : copies)
      bench.accelerator()->run(kernels::BoxCopy{std::move(copy), source, target});
    return;
  }
  for (i64 t = 0; t < tokens; ++t) {
    const N* const source = from.row(t);
    N* const target = to.row(t);
    for (const FeatureRun& run : runs) std::copy_n(source + run.from, run.size, target + run.to);
  }
}

template <class N>
Part<N> picked(kernels::Workbench& bench, const Part<N>& from, index::AxisMap features,
               const std::vector<i64>& positions, i64 tokens) {
  const std::vector<FeatureRun> runs = runs_of(positions);
  Part<N> result = empty_part<N>(std::move(features), tokens);
  bench.zeros(result.data);
  copy_runs(bench, from, std::span(runs), tokens, result);
  return result;
}

template <class N>
Part<N> aligned(kernels::Workbench& bench, const Part<N>& part, const index::AxisMap& wanted,
                i64 tokens, const std::string& what) {
  bench.in(part.data);  // on an accelerator, the copies below share it
  if (part.features == wanted) return part;
  return picked(bench, part, wanted, positions_of(wanted, part.features, what), tokens);
}

#define SHARDTOOL_INSTANTIATE(N)                                                                 \
  template void copy_runs(kernels::Workbench&, const Part<N>&, std::span<const FeatureRun>, i64, \
                          Part<N>&);                                                             \
  template Part<N> picked(kernels::Workbench&, const Part<N>&, index::AxisMap,                   \
                          const std::vector<i64>&, i64);                                         \
  template Part<N> aligned(kernels::Workbench&, const Part<N>&, const index::AxisMap&, i64,      \
                           const std::string&);
SHARDTOOL_INSTANTIATE(kernels::Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::ops
