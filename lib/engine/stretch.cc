#include "lib/engine/stretch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/even_shares.h"
#include "lib/engine/weights/block_grid.h"
#include "lib/index/region.h"
#include "lib/mesh/rank_groups.h"

namespace shardtool::engine {
namespace {

/// Bytes that devices share (WeightSource::alike_along) count once.
i64 bytes_of(const Side& side, const SideLayer& layer, std::span<const i64> ranks) {
  i64 bytes = 0;
  for (const ops::Step& step : layer.flow.steps) {
    for (const size_t tensor : stored_behind(side, *step.op)) {
      const mesh::RankGroups alike(side.mesh, {ranks.begin(), ranks.end()},
                                   side.weights->alike_along(tensor));
      for (const i64 rank : ranks) {
        if (alike.of(rank).front() != rank || !side.layouts(tensor).region(rank)) continue;
        const Shape shape = index::local_shape(side.region(tensor, rank));
        bytes += byte_size(side.tensors[tensor].dtype, shape).value_or(0);
      }
    }
  }
  return bytes;
}

i64 bytes_of(const LayerPair& layer, const Side& whole, const Side& shards) {
  constexpr std::array<i64, 1> kAlone{0};
  return bytes_of(whole, layer.whole, kAlone) +
         bytes_of(shards, layer.shards, layer.shards.devices);
}

}  // namespace

Stretch stretch_of(const LayerShare& share, const std::vector<LayerPair>& layers, const Side& whole,
                   const Side& shards) {
  std::vector<i64> bytes;
  for (const LayerPair& layer : layers) bytes.push_back(bytes_of(layer, whole, shards));
  const std::vector<int> runs = even_shares(bytes, share.of);
  const auto [first, last] = std::ranges::equal_range(runs, share.number);
  return {static_cast<size_t>(first - runs.begin()), static_cast<size_t>(last - runs.begin())};
}

std::set<size_t> tensors_of(const Stretch& stretch, const std::vector<LayerPair>& layers,
                            const Side& shards) {
  std::set<size_t> tensors;
  for (size_t layer = stretch.begin; layer < stretch.end; ++layer) {
    for (const ops::Step& step : layers[layer].shards.flow.steps) {
      const auto behind = stored_behind(shards, *step.op);
      tensors.insert(behind.begin(), behind.end());
    }
  }
  return tensors;
}

std::set<size_t> judged_tensors(const LayerShare& share, const Stretch& stretch,
                                const std::vector<LayerPair>& layers, const Side& shards,
                                const ReadingOrder& order) {
  using Reader = std::pair<bool, size_t>;  ///< reads all of it; layer
  std::vector<std::optional<Reader>> last(shards.tensors.size());
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const auto& steps = layers[layer].shards.flow.steps;
    for (size_t step = 0; step < steps.size(); ++step) {
      const std::optional<Reader> reader(std::in_place, !order.is_looked_up(layer, step), layer);
      const auto note = [&](size_t tensor) { last[tensor] = std::max(last[tensor], reader); };
      for (const ops::BoundWeight& weight : steps[step].op->weights)
        std::ranges::for_each(weight, note);  // also those that are unpacked from stored ones
      std::ranges::for_each(stored_behind(shards, *steps[step].op), note);
    }
  }
  std::set<size_t> judged;
  for (size_t tensor = 0; tensor < last.size(); ++tensor) {
    const bool is_own =
        last[tensor] ? stretch.contains(last[tensor]->second)
                     : tensor % static_cast<size_t>(share.of) == static_cast<size_t>(share.number);
    if (is_own) judged.insert(tensor);
  }
  return judged;
}

i64 weight_bytes(const Stretch& stretch, const std::vector<LayerPair>& layers, const Side& whole,
                 const Side& shards) {
  i64 bytes = 0;
  for (size_t layer = stretch.begin; layer < stretch.end; ++layer) {
    bytes += bytes_of(layers[layer], whole, shards);
  }
  return bytes;
}

}  // namespace shardtool::engine
