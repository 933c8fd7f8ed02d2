#include "shardtool/model/handoff.h"

#include <algorithm>

namespace shardtool::model {

std::span<const i64> devices_of(const Layer& layer, const LayoutOf& layouts) {
  for (const BoundOp& bound : layer.ops) {
    for (const BoundWeight& weight : bound.weights) {
      if (!weight.empty()) return layouts(weight.front()).ranks();
    }
  }
  return {};
}

std::optional<Exchange> handoff(const Layer& from, const Layer& to, const LayoutOf& layouts,
                                const mesh::Mesh& mesh, const Value& x) {
  const auto senders = devices_of(from, layouts);
  const auto receivers = devices_of(to, layouts);
  const bool meet = std::find_first_of(senders.begin(), senders.end(), receivers.begin(),
                                       receivers.end()) != senders.end();
  if (meet || senders.empty() || receivers.empty()) return std::nullopt;
  Exchange exchange{plan::Move::kPermute, {}, 0};
  for (const index::AxisMap& map : x.features) {
    exchange.elements = std::max(exchange.elements, map.local_size());
  }
  for (const mesh::MeshAxis& axis : mesh.axes()) {
    if (mesh.index_on(axis.name, senders.front()) == mesh.index_on(axis.name, receivers.front())) {
      continue;
    }
    exchange.over.push_back({axis.name});
    exchange.elements *= axis.size;
  }
  return exchange;
}

}  // namespace shardtool::model
