#include "lib/model/flow/handoff.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shardtool::model {
namespace {

Exchange stage_exchange(const mesh::Mesh& mesh, i64 sender, i64 receiver, const Value& value) {
  Exchange exchange{plan::Move::kPermute, {}, 0, value.of_prompt};
  for (const index::AxisMap& map : value.features) {
    exchange.elements = std::max(exchange.elements, map.local_size());
  }
  for (const mesh::MeshAxis& axis : mesh.axes()) {
    if (mesh.index_on(axis.name, sender) == mesh.index_on(axis.name, receiver)) continue;
    exchange.over.push_back({axis.name});
    exchange.elements *= axis.size;
  }
  return exchange;
}

/// Returns the devices of the weight that the fewest devices have; empty for a layer without
/// weights.
std::span<const i64> devices_of_weights(const Layer& layer, const LayoutOf& layouts) {
  std::span<const i64> fewest;
  for (const BoundOp& bound : layer.ops) {
    const bool is_whole = bound.form == nullptr && !bound.weights.empty();
    if (!is_whole || bound.weights.front().size() != 1) continue;
    const std::span<const i64> ranks = layouts(bound.weights.front().front()).ranks();
    if (fewest.empty() || ranks.size() < fewest.size()) fewest = ranks;
  }
  return fewest;
}

}  // namespace

std::span<const i64> devices_of(const Model& model, size_t layer, const LayoutOf& layouts) {
  for (size_t i = layer + 1; i-- > 0;) {
    const auto devices = devices_of_weights(model.layers[i], layouts);
    if (!devices.empty()) return devices;
  }
  for (size_t i = layer + 1; i < model.layers.size(); ++i) {
    const auto devices = devices_of_weights(model.layers[i], layouts);
    if (!devices.empty()) return devices;
  }
  return {};
}

std::vector<std::vector<i64>> running_devices(const Model& model, const LayoutOf& layouts) {
  std::vector<std::vector<i64>> running;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const auto devices = devices_of(model, i, layouts);
    std::span<const i64> beside;
    if (model.layers[i].part == Layer::Part::kStart) {
      if (i + 1 < model.layers.size()) beside = devices_of(model, i + 1, layouts);
    } else if (model.layers[i].part != Layer::Part::kBlock && i > 0) {
      beside = running.back();
    }
    std::vector<i64> both;
    std::ranges::set_intersection(devices, beside, std::back_inserter(both));
    running.push_back(both.empty() ? std::vector(devices.begin(), devices.end()) : std::move(both));
  }
  return running;
}

bool have_common(std::span<const i64> a, std::span<const i64> b) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) return true;
    ++(a[i] < b[j] ? i : j);
  }
  return false;
}

i64 pipeline_stages(const Model& model, std::span<const std::vector<i64>> running) {
  std::vector<std::span<const i64>> stages;
  for (size_t i = 0; i < running.size(); ++i) {
    if (model.layers[i].number < 0 || model.layers[i].is_vision_encoder) continue;
    const bool is_new = std::ranges::none_of(
        stages, [&](std::span<const i64> stage) { return have_common(stage, running[i]); });
    if (is_new) stages.push_back(running[i]);
  }
  return std::ssize(stages);
}

std::vector<ValueMove> handoffs(std::span<const i64> senders, std::span<const i64> receivers,
                                const mesh::Mesh& mesh, const Stream& passed) {
  if (senders.empty() || receivers.empty() || have_common(senders, receivers)) return {};
  std::vector<ValueMove> all;
  for (const auto& [name, value] : passed) {
    all.push_back({name, stage_exchange(mesh, senders.front(), receivers.front(), value)});
  }
  return all;
}

}  // namespace shardtool::model
