#include "lib/engine/run/layer_entry.h"

#include <algorithm>

#include "kernels/field/field.h"
#include "lib/ops/part_moves.h"

namespace shardtool::engine {
namespace {

bool has_sum(const ops::Value& entry, const mesh::Mesh& mesh, i64 rank) {
  for (size_t a = 0; a < entry.on.size(); ++a) {
    const bool is_first = mesh.index_on(mesh.axes()[a].name, rank) == 0;
    if (entry.on[a].is(plan::Placement::Kind::kPartial) && !is_first) return false;
  }
  return true;
}

template <class N>
Placed<N> value_entry(const Part<N>& whole, const ops::Value& entry, const mesh::Mesh& mesh,
                      std::span<const i64> devices, std::span<const i64> own, i64 tokens,
                      kernels::Workbench& bench) {
  Placed<N> parts;
  for (size_t i = 0; i < devices.size(); ++i) {
    const i64 rank = devices[i];
    if (!std::binary_search(own.begin(), own.end(), rank)) continue;
    const index::AxisMap& features = entry.features.at(entry.features.size() == 1 ? 0 : i);
    parts[rank] = has_sum(entry, mesh, rank)
                      ? ops::aligned(bench, whole, features, tokens, entry.name)
                      : empty_part<N>(features, tokens);
  }
  return parts;
}

}  // namespace

template <class N>
PlacedValues<N> layer_entry(const Wholes<N>& values, const model::Stream& entry,
                            const mesh::Mesh& mesh, std::span<const i64> devices,
                            std::span<const i64> own, i64 tokens, kernels::Workbench& bench) {
  PlacedValues<N> placed;
  for (const auto& [name, value] : entry) {
    placed[name] = value_entry(values.at(name), value, mesh, devices, own, tokens, bench);
  }
  return placed;
}

#define SHARDTOOL_INSTANTIATE(N)                                                                  \
  template PlacedValues<N> layer_entry(const Wholes<N>&, const model::Stream&, const mesh::Mesh&, \
                                       std::span<const i64>, std::span<const i64>, i64,           \
                                       kernels::Workbench&);
SHARDTOOL_INSTANTIATE(kernels::Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
