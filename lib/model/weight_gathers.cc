#include "lib/model/weight_gathers.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "lib/layout/gathered.h"
#include "lib/mesh/rank_groups.h"
#include "lib/model/flow/handoff.h"
#include "lib/plan/byte_count.h"

namespace shardtool::model {
namespace {

constexpr i64 kBitsPerByte = 8;

/// Number of elements that two parts of a tensor have in common.
i64 common(const index::Region& a, const index::Region& b) {
  i64 elements = 1;
  for (size_t d = 0; d < a.size(); ++d) {
    elements *= compose(index::inverse(a[d]), b[d]).image_size();
  }
  return elements;
}

/// Returns true if the maps together have every index of `wanted`.
bool is_covered(const index::AxisMap& wanted, const std::set<const index::AxisMap*>& maps) {
  std::vector<index::Interval> had;  // in local indices of `wanted`
  for (const index::AxisMap* map : maps) {
    const index::AxisMap shared = compose(index::inverse(*map), wanted);
    for (const index::Piece& piece : shared.pieces())
      had.push_back({piece.local, piece.local_end()});
  }
  std::ranges::sort(had, {}, &index::Interval::begin);
  i64 covered = 0, end = 0;
  for (const index::Interval& interval : had) {
    covered += std::max<i64>(0, interval.end - std::max(end, interval.begin));
    end = std::max(end, interval.end);
  }
  return covered == wanted.image_size();
}

/// Returns true if devices that differ only along `over` store together what each of them computes
/// with. Requires that `over` does not cut the computed layout.
bool is_held_over(const mesh::Mesh& mesh, const mesh::Over& over, const layout::Layout& stored,
                  const layout::Layout& computed) {
  std::vector<std::string> along;
  for (const mesh::AxisRef& axis : over) along.push_back(axis.axis);
  const index::HolderSet& holders = stored.holders();
  std::unordered_map<i64, int> holder_of;
  for (int h = 0; h < holders.size(); ++h) holder_of[stored.ranks()[static_cast<size_t>(h)]] = h;
  const mesh::RankGroups groups(mesh, stored.ranks(), along);
  std::unordered_set<const std::vector<i64>*> seen;  // devices of a group compute with the same
  for (const i64 rank : computed.ranks()) {
    const std::vector<i64>& group = groups.of(rank);
    if (!seen.insert(&group).second) continue;
    const index::Region wanted = *computed.region(rank);
    for (size_t d = 0; d < wanted.size(); ++d) {
      std::set<const index::AxisMap*> maps;
      for (const i64 member : group) {
        const auto map = static_cast<size_t>(holders.pick(holder_of.at(member))[d]);
        maps.insert(&holders.maps(static_cast<int>(d))[map]);
      }
      if (!is_covered(wanted[d], maps)) return false;
    }
  }
  return true;
}

/// Smallest payload of an all_gather over n devices that sends each of them `received` bytes.
i64 payload_for(i64 received, i64 n) {
  return received + ceil_div(received, n - 1);
}

}  // namespace

ops::WeightRead StoredWeights::read(size_t tensor, std::span<const TensorSpec> tensors) const {
  const auto found = packed.find(tensor);
  return found != packed.end() ? found->second : ops::read_of(tensors[tensor].dtype);
}

const std::map<WeightGathers::Alike, i64>& WeightGathers::weights_of(const Layer& layer) {
  const auto [found, is_new] = weights_of_.try_emplace(&layer);
  std::map<Alike, i64>& weights = found->second;
  if (!is_new) return weights;
  std::vector<size_t> tensors;
  for (const BoundOp& op : layer.ops) {
    for (const BoundWeight& weight : op.weights)
      tensors.insert(tensors.end(), weight.begin(), weight.end());
  }
  std::ranges::sort(tensors);
  tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
  for (const size_t tensor : tensors) {
    const auto bits = static_cast<i64>(std::ceil(weights_.read(tensor, tensors_).bits));
    ++weights[{&weights_.layouts(tensor), &weights_.computed(tensor), bits}];
  }
  return weights;
}

const std::vector<i64>& WeightGathers::missing(const Alike& weight, i64 replicas) {
  std::vector<i64>& elements = missing_[{weight, replicas}];
  if (!elements.empty()) return elements;
  elements.resize(static_cast<size_t>(mesh_.size()));
  for (const i64 rank : weight.computed->ranks()) {
    const index::Region wanted = *weight.computed->region(rank);
    const auto had = weight.stored->region(rank);
    const i64 of_replicas = had ? common(*had, wanted) : 0;
    elements[static_cast<size_t>(rank)] = index::image_size(wanted) - of_replicas / replicas;
  }
  return elements;
}

const mesh::Over& WeightGathers::gathered_over(const Alike& weight) {
  const auto [found, is_new] = gathered_over_.try_emplace(weight);
  mesh::Over& over = found->second;
  if (!is_new) return over;
  for (const mesh::AxisRef& axis : weights_.over) {
    if (layout::is_cut_along(*weight.stored, axis.axis)) over.push_back(axis);
  }
  if (mesh::extent(mesh_, over) == 1) return over;
  for (const mesh::MeshAxis& axis : mesh_.axes()) {
    const mesh::AxisRef other{axis.name};
    const bool is_other = std::ranges::find(over, other) == over.end();
    if (!is_other || axis.size == 1 || !layout::is_cut_along(*weight.stored, axis.name)) continue;
    if (is_held_over(mesh_, over, *weight.stored, *weight.computed)) break;
    over.push_back(other);
  }
  return over;
}

std::vector<WeightGathers::Received> WeightGathers::received(const Layer& layer, i64 replicas,
                                                             const mesh::Over& token_axes) {
  std::map<std::string, Received> by_axes;
  for (const auto& [weight, tensors] : weights_of(layer)) {
    const mesh::Over& over = gathered_over(weight);
    const i64 in_mesh = mesh::extent(mesh_, layout::replica_axes(*weight.stored, token_axes));
    const i64 holders = plan::times(replicas, in_mesh);
    if (mesh::extent(mesh_, over) == 1 && holders == 1) continue;
    Received& sum = by_axes[mesh::to_string(over)];
    sum.over = over;
    sum.bits.resize(static_cast<size_t>(mesh_.size()));
    const std::vector<i64>& lacking = missing(weight, holders);
    for (size_t rank = 0; rank < lacking.size(); ++rank) {
      plan::add_bytes(sum.bits[rank],
                      plan::times(lacking[rank], plan::times(tensors, weight.bits)));
    }
  }
  std::vector<Received> all;
  for (auto& [axes, sum] : by_axes) all.push_back(std::move(sum));
  return all;
}

std::vector<WeightGather> WeightGathers::of(const Layer& layer) {
  std::vector<WeightGather> gathers;
  if (weights_.over.empty()) return gathers;
  for (const Received& sum : received(layer)) {
    const i64 most = ceil_div(*std::ranges::max_element(sum.bits), kBitsPerByte);
    if (most == 0) continue;
    gathers.push_back({sum.over, payload_for(most, mesh::extent(mesh_, sum.over))});
  }
  return gathers;
}

std::vector<i64> WeightGathers::largest(const Model& model, i64 replicas,
                                        const mesh::Over& token_axes) {
  std::vector<i64> bytes(static_cast<size_t>(mesh_.size()));
  const auto running = running_devices(model, weights_.computed);
  std::set<std::pair<std::map<Alike, i64>, std::vector<i64>>> seen;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    // An equal layer on the same devices gathers as much.
    if (!seen.emplace(weights_of(layer), running[i]).second) continue;
    std::vector<i64> of_layer(bytes.size());
    for (const Received& sum : received(layer, replicas, token_axes)) {
      for (size_t rank = 0; rank < bytes.size(); ++rank) of_layer[rank] += sum.bits[rank];
    }
    for (const i64 device : running[i]) {
      const auto rank = static_cast<size_t>(device);
      bytes[rank] = std::max(bytes[rank], ceil_div(of_layer[rank], kBitsPerByte));
    }
  }
  return bytes;
}

}  // namespace shardtool::model
