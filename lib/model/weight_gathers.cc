#include "lib/model/weight_gathers.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "lib/layout/gathered.h"
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

mesh::Over WeightGathers::gathered_over(const layout::Layout& stored) const {
  mesh::Over over;
  for (const mesh::AxisRef& axis : weights_.over) {
    if (layout::is_cut_along(stored, axis.axis)) over.push_back(axis);
  }
  return over;
}

std::vector<WeightGathers::Received> WeightGathers::received(const Layer& layer, i64 replicas,
                                                             const mesh::Over& token_axes) {
  std::map<std::string, Received> by_axes;
  for (const auto& [weight, tensors] : weights_of(layer)) {
    const mesh::Over over = gathered_over(*weight.stored);
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

std::vector<i64> WeightGathers::largest(const std::vector<Layer>& layers, i64 replicas,
                                        const mesh::Over& token_axes) {
  std::vector<i64> bytes(static_cast<size_t>(mesh_.size()));
  std::set<std::map<Alike, i64>> seen;
  for (const Layer& layer : layers) {
    if (!seen.insert(weights_of(layer)).second) continue;  // an equal layer gathers as much
    std::vector<i64> of_layer(bytes.size());
    for (const Received& sum : received(layer, replicas, token_axes)) {
      for (size_t rank = 0; rank < bytes.size(); ++rank) of_layer[rank] += sum.bits[rank];
    }
    for (size_t rank = 0; rank < bytes.size(); ++rank) {
      bytes[rank] = std::max(bytes[rank], ceil_div(of_layer[rank], kBitsPerByte));
    }
  }
  return bytes;
}

}  // namespace shardtool::model
