#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/price.h"
#include "lib/plan/collective/profile_list.h"
#include "tests/model/published.h"
#include "tests/presets/fixture.h"

/// Prices of published models and of fixtures over a mesh, and their collectives as texts.
namespace shardtool::model {

/// Price of a published model with the preset of its family.
inline Price price_of(const Published& m, const std::string& mesh, const ReplicaWorkload& workload,
                      const char* profile = nullptr) {
  const auto resolution = m.on(mesh);
  std::optional<plan::HardwareProfile> hardware;
  if (profile != nullptr) hardware = plan::find_profile(profile);
  return price(m.bound, m.tensors, weights_of(resolution, m.tensors.size()), resolution.mesh,
               workload, hardware ? &*hardware : nullptr);
}

/// "tp all_reduce 5 x 96; ..." : axis, op, count, payload in bytes.
inline std::string comm_text(const std::vector<CommRow>& rows) {
  std::string text;
  for (const CommRow& row : rows) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{} {} {} x {}", row.axis, to_string(row.collective.op), row.count,
                        row.collective.payload_bytes);
  }
  return text;
}

/// Price of a fixture with its own preset.
inline Price price_of(const std::string& family, const std::string& mesh,
                      const ReplicaWorkload& workload) {
  const mapping::Fixture& f = mapping::fixture(family);
  std::string why_not;
  const auto bound = bind_model(find_graph(f.config, why_not), f.config, f.tensors);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh(mesh);
  const auto resolution = resolve(mapping::load_preset(f.preset), f.tensors, &f.config, options);
  return price(bound, f.tensors, weights_of(resolution, f.tensors.size()), resolution.mesh,
               workload, nullptr);
}

/// Collectives of one decoded token.
inline std::string comm_of(const std::string& family, const std::string& mesh) {
  return comm_text(price_of(family, mesh, {}).decode.comm);
}

}  // namespace shardtool::model
