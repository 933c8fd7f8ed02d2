#include "lib/engine/run/part.h"

#include <span>
#include <vector>

#include "kernels/field/field.h"
#include "lib/ops/part_moves.h"

namespace shardtool::engine {
namespace {

std::vector<ops::FeatureRun> runs_into_whole(const index::AxisMap& features) {
  std::vector<ops::FeatureRun> runs;
  for (const index::Piece& piece : features.pieces()) {
    runs.push_back({piece.local, piece.global, piece.size});
  }
  return runs;
}

}  // namespace

template <class N>
Part<N> joined(kernels::Workbench& bench, const Placed<N>& parts, i64 tokens) {
  if (parts.empty()) return {};
  const Part<N>& first = parts.begin()->second;
  const auto all = index::AxisMap::identity(first.features.global_size());
  if (first.features == all) return first;
  Part<N> whole = empty_part<N>(all, tokens);
  bench.zeros(whole.data);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const auto runs = runs_into_whole(part->second.features);
    ops::copy_runs(bench, part->second, std::span(runs), tokens, whole);
  }
  return whole;
}

template Part<kernels::Field> joined(kernels::Workbench&, const Placed<kernels::Field>&, i64);
template Part<double> joined(kernels::Workbench&, const Placed<double>&, i64);
template Part<float> joined(kernels::Workbench&, const Placed<float>&, i64);

}  // namespace shardtool::engine
