#include "lib/ops/rules.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/flow/flow.h"
#include "lib/model/graph/graph_list.h"
#include "lib/ops/mesh_cuts.h"
#include "lib/ops/op_table.h"
#include "tests/model/published.h"
#include "tests/presets/fixture.h"

using namespace shardtool;
using ops::kCut;
using ops::kSum;
using ops::kWhole;
using plan::Placement;

namespace {

/// A whole operand may be cut for free.
bool takes(const Placement& needed, const Placement& on) {
  return on == needed || (on == kWhole && needed.is(Placement::Kind::kSharded));
}

/// Placement of a step's result along a mesh axis before it was reduced or gathered.
Placement made_before(const ops::Step& step, size_t axis, const mesh::Mesh& mesh) {
  const mesh::AxisRef ref{mesh.axes()[axis].name};
  for (const ops::Exchange& exchange : step.after) {
    if (std::ranges::find(exchange.over, ref) == exchange.over.end()) continue;
    if (exchange.move == plan::Move::kAllReduce) return kSum;
    if (exchange.move == plan::Move::kAllGather) return kCut;
  }
  return step.made.front()[axis];
}

/// Counts steps that follow a rule of their op, and lists the others.
struct Follows {
  i64 steps = 0;
  std::string broken;

  void add(const model::Model& model, const ops::Step& step, const ops::LayoutOf& layouts,
           const mesh::Mesh& mesh) {
    const ops::BoundOp& bound = *step.op;
    const auto rows = ops::rules_of(ops::RuleSite(model, bound, step.widths));
    for (size_t a = 0; a < mesh.axes().size(); ++a) {
      std::vector<Placement> on;
      for (const auto& input : step.read) on.push_back(input[a]);
      for (const auto& weight : bound.weights) {
        on.push_back(ops::placement_of(mesh, weight, layouts)[a]);
      }
      const Placement made = made_before(step, a, mesh);
      const bool is_rule = std::ranges::any_of(rows, [&](const plan::OpRow& row) {
        REQUIRE(row.operands.size() == on.size());
        return row.result == made && std::ranges::equal(row.operands, on, takes);
      });
      steps += 1;
      if (is_rule) continue;
      broken += fmt::format("\n{} {} on {}: {}", bound.op->row->name, bound.op->out.front(),
                            mesh.axes()[a].name, to_string(plan::OpRow{on, made}));
    }
  }
};

Follows follows(const mapping::Fixture& f, const std::string& mesh_text) {
  Follows found;
  std::string why_not;
  const auto graph = model::find_graph(f.config, why_not);
  if (graph == nullptr) return found;
  const auto bound = model::bind_model(graph, f.config, f.tensors);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh(mesh_text);
  const auto resolution = resolve(mapping::load_preset(f.preset), f.tensors, &f.config, options);
  const auto layouts = model::layouts_of(resolution, f.tensors.size());
  model::Stream stream;
  for (size_t i = 0; i < bound.layers.size(); ++i) {
    const auto flow = model::flow(bound, i, layouts, resolution.mesh, {}, stream);
    for (const ops::Step& step : flow.steps) {
      found.add(bound, step, layouts, resolution.mesh);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("every step of every family's flow follows a rule of its op") {
  i64 steps = 0;
  for (const mapping::Fixture& f : mapping::fixtures()) {
    CAPTURE(f.family);
    for (const auto& expected : f.meshes) {
      CAPTURE(expected.mesh);
      try {
        const Follows found = follows(f, expected.mesh);
        CHECK(found.broken == "");
        steps += found.steps;
      } catch (const Error& error) {
        // flow refuses some cuts; price_test has them
        CHECK(error.code() == ErrorCode::kUnsupported);
      }
    }
  }
  CHECK(steps > 10'000);
}
