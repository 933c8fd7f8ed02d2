#include "lib/model/op_program.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/price.h"
#include "lib/plan/placement/chain.h"
#include "lib/plan/placement/moves.h"
#include "tests/model/published.h"
#include "tests/presets/fixture.h"

using namespace shardtool;
using plan::ChainPlan;

namespace {

constexpr i64 kTokens = 12, kSequences = 2;

/// A model's programs on a mesh, in the order of its layers.
struct Lowered {
  std::vector<model::LayerProgram> programs;
  plan::Chain chain;
};

Lowered lowered(const model::Model& bound, std::span<const TensorSpec> tensors,
                const model::LayoutOf& layouts, const mesh::Mesh& mesh, i64 tokens) {
  Lowered made{model::op_programs(bound, tensors, layouts, mesh, {kSequences, tokens}), {}};
  std::map<size_t, plan::Link> links;
  for (size_t p = 0; p < made.programs.size(); ++p) {
    made.chain.programs.push_back(&made.programs[p].program);
    for (const size_t layer : made.programs[p].layers) links[layer] = {p, 0};
  }
  for (const auto& [layer, link] : links) made.chain.links.push_back(link);
  return made;
}

ChainPlan with(const Lowered& model, const plan::Solver& solver) {
  return plan_op_by_op(
      model.chain,
      [&](const plan::Link&, size_t, const plan::ActionSet& set) { return solver.choose(set); },
      plan::Parity::kExact, plan::Reuse::kYes);
}

/// "tp all_reduce 5 x 96": axis, op, count, payload, of all layers.
using Counts = std::map<std::string, i64>;

Counts counts_of(const Lowered& model, const ChainPlan& whole) {
  Counts counts;
  for (const size_t number : whole.of_link) {
    const plan::ProgramPlan& one = whole.plans[number];
    for (size_t op = 0; op < one.actions.size(); ++op) {
      for (const auto& move : moves_of(one.sets[op], one.actions[op])) {
        const auto& mesh = one.sets[op].mesh;
        const auto collective = collective_of(move, mesh, mesh.size());
        if (!collective) continue;
        std::string axes;
        for (const int a : move.mesh_axes) {
          axes += (axes.empty() ? "" : "*") + mesh.axes()[static_cast<size_t>(a)].name;
        }
        counts[fmt::format("{} {} x {}", axes, to_string(collective->op),
                           collective->payload_bytes)] += 1;
      }
    }
  }
  static_cast<void>(model);
  return counts;
}

Counts counts_of(const std::vector<model::CommRow>& rows) {
  Counts counts;
  for (const model::CommRow& row : rows) {
    counts[fmt::format("{} {} x {}", row.axis, to_string(row.collective.op),
                       row.collective.payload_bytes)] += row.count;
  }
  return counts;
}

/// A family of the fixtures on a mesh.
struct Case {
  const mapping::Fixture& f;
  mapping::Resolution resolution;
  model::LayoutOf layouts;
  model::Model bound;

  Case(const mapping::Fixture& fixture, const std::string& mesh)
      : f(fixture),
        resolution(resolve_on(fixture, mesh)),
        layouts(model::layouts_of(resolution, f.tensors.size())),
        bound(bound_to(f)) {}
  static model::Model bound_to(const mapping::Fixture& f) {
    std::string why_not;
    return model::bind_model(model::find_graph(f.config, why_not), f.config, f.tensors);
  }
  static mapping::Resolution resolve_on(const mapping::Fixture& f, const std::string& mesh) {
    mapping::ResolveOptions options;
    options.mesh = mesh::parse_mesh(mesh);
    return resolve(mapping::load_preset(f.preset), f.tensors, &f.config, options);
  }
  Lowered lower(i64 tokens = kTokens) const {
    return lowered(bound, f.tensors, layouts, resolution.mesh, tokens);
  }
};

std::string told(const Counts& counts) {
  std::string text;
  for (const auto& [key, count] : counts) text += fmt::format("{} times {}\n", count, key);
  return text;
}

}  // namespace

TEST_CASE("the plan of a tensor-parallel cut has the collectives that flow has") {
  for (const char* family : {"llama", "gpt2", "qwen3", "mixtral", "qwen3_moe", "gemma2"}) {
    CAPTURE(family);
    const Case one(mapping::fixture(family), "tp=2");
    const auto price = model::price(one.bound, one.f.tensors, {{}, one.layouts, one.layouts},
                                    one.resolution.mesh, {.batch = kSequences}, nullptr);
    const Lowered model = one.lower(1);
    CHECK(told(counts_of(model, with(model, plan::GreedyReshard()))) ==
          told(counts_of(price.decode.comm)));
  }
}

TEST_CASE("every family has a plan, whose moves have the bytes of its actions") {
  i64 planned = 0;
  for (const mapping::Fixture& f : mapping::fixtures()) {
    CAPTURE(f.family);
    std::string why_not;
    if (model::find_graph(f.config, why_not) == nullptr) continue;
    const Case one(f, "tp=1");
    const ChainPlan plan = with(one.lower(), plan::GreedyReshard());
    CHECK(plan.bytes == 0);
    ++planned;
  }
  CHECK(planned > 150);
}

TEST_CASE("the optimum is never dearer than greedy or layer by layer, and moves add up") {
  for (const char* family : {"llama", "gpt2", "qwen3_moe", "deepseek_v3", "mamba2", "t5"}) {
    CAPTURE(family);
    const Case one(mapping::fixture(family), "tp=2");
    const Lowered model = one.lower();
    for (const bool scatters : {false, true}) {
      const auto allowed = scatters ? plan::AllowedMoves::all() : plan::AllowedMoves();
      const ChainPlan greedy = with(model, plan::GreedyReshard(allowed));
      const ChainPlan best = plan_together(model.chain, allowed);
      CHECK(best.bytes <= greedy.bytes);
      CHECK(best.bytes <= plan_by_link(model.chain, allowed).bytes);
      for (const ChainPlan& plan : {greedy, best}) {
        for (const plan::ProgramPlan& made : plan.plans) {
          for (size_t op = 0; op < made.actions.size(); ++op) {
            i64 bytes = 0;
            for (const auto& move : moves_of(made.sets[op], made.actions[op])) bytes += move.bytes;
            CHECK(bytes == made.actions[op].bytes);
          }
        }
      }
    }
  }
}

TEST_CASE("names of tensors inside a layer") {
  CHECK(model::name_in_layer("model.layers.12.mlp.up_proj.weight") == "mlp.up_proj.weight");
  CHECK(model::name_in_layer("model.layers.0.mlp.experts.3.w1") == "mlp.experts.3.w1");
  CHECK(model::name_in_layer("model.embed_tokens.weight") == "model.embed_tokens.weight");
  CHECK(model::name_in_layer("h.0.attn.c_attn.weight") == "attn.c_attn.weight");
}
