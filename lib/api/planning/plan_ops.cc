#include "lib/api/planning/plan_ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/planning/plan_cost.h"
#include "lib/api/planning/plan_reshard.h"
#include "lib/api/planning/unpacked_tensors.h"
#include "lib/api/transfer/placed_tensors.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/base/error.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/op_program.h"
#include "lib/plan/placement/chain.h"

namespace shardtool::api {
namespace {

using plan::ActionSet;
using plan::ProgramPlan;

/// "tp: (R, S(0)) -> S(2); dp: ..."
std::string rows_text(const ActionSet& set, const plan::Action& action) {
  std::vector<std::string> texts;
  for (size_t a = 0; a < action.rows.size(); ++a) {
    if (set.mesh.axes()[a].size == 1) continue;
    texts.push_back(
        fmt::format("{}: {}", set.mesh.axes()[a].name, to_string(set.rows[action.rows[a]])));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// Plans a model and makes the report.
class Planner {
 public:
  Planner(const OpPlanOptions& options, const model::Model& model, const mesh::Mesh& mesh,
          std::vector<model::LayerProgram> programs)
      : options_(options), model_(model), mesh_(mesh), programs_(std::move(programs)) {
    std::map<size_t, plan::Link> links;
    for (size_t p = 0; p < programs_.size(); ++p) {
      chain_.programs.push_back(&programs_[p].program);
      for (const size_t layer : programs_[p].layers) links[layer] = {p, variant_of(p, layer)};
    }
    for (const auto& [layer, link] : links) {
      layers_.push_back(layer);
      chain_.links.push_back(link);
    }
    options_.policies.require_used(uses_);
  }

  void fill(OpPlanReport& report) {
    const plan::ChainPlan plan = solve(options_.policies.policy, report.warnings);
    report.bytes = plan.bytes;
    add_layers(plan, report);
    for (auto& [key, row] : collectives_) report.collectives.push_back(std::move(row));
    for (const OpLayers& layers : report.layers) {
      report.us += layers.us * static_cast<double>(layers.numbers.size());
    }
    if (options_.compares) compare(plan, report);
  }

 private:
  /// Number of the policies of a layer's ops; equal ones have one number.
  size_t variant_of(size_t program, size_t layer) {
    std::vector<OpPolicy> policies;
    const model::Layer& of = model_.layers[layer];
    const model::LayerProgram& lowered = programs_[program];
    for (size_t op = 0; op < lowered.names.size(); ++op) {
      uses_.push_back({of.block, of.number, lowered.program.ops[op].op, lowered.names[op]});
      policies.push_back(options_.policies.at(uses_.back()));
    }
    const auto known = std::ranges::find(variants_, policies);
    if (known != variants_.end()) return static_cast<size_t>(known - variants_.begin());
    variants_.push_back(std::move(policies));
    return variants_.size() - 1;
  }

  /// The moves that any op may make.
  plan::AllowedMoves allowed_somewhere() const {
    plan::AllowedMoves moves;
    for (const std::vector<OpPolicy>& policies : variants_) {
      for (const OpPolicy& policy : policies) {
        moves.reduce_scatter = moves.reduce_scatter || policy.allow_partial_to_sharded;
      }
    }
    return moves;
  }

  plan::ChainPlan solve(const OpPolicy& policy, std::vector<std::string>& warnings) const {
    const plan::AllowedMoves allowed = policy.allowed();
    if (policy.solver == OpSolver::kExact) return checked(plan_together(chain_, allowed), warnings);
    if (policy.solver == OpSolver::kTogether) {
      return checked(plan_by_link(chain_, allowed), warnings);
    }
    auto plan = plan_op_by_op(
        chain_,
        [&](const plan::Link& link, size_t op, const ActionSet& set) {
          const OpPolicy& own = variants_[link.variant][op];
          ActionSet named = set;
          named.op = name_of(link, op, set);
          return plan::choose(*own.make(), named, plan::OnReshard::kSilent, warnings);
        },
        policy.generation, plan::Reuse::kYes);
    return checked(std::move(plan), warnings);
  }

  /// "linear 'q' of layer 0"
  std::string name_of(const plan::Link& link, size_t op, const ActionSet& set) const {
    const model::LayerProgram& program = programs_[link.program];
    const model::Layer& layer = model_.layers[program.layers.front()];
    return fmt::format("{} '{}' of {}", set.op, program.names[op],
                       layer.number < 0 ? layer.block : fmt::format("layer {}", layer.number));
  }

  /// Applies the policies on moves to a plan.
  plan::ChainPlan checked(plan::ChainPlan plan, std::vector<std::string>& warnings) const {
    std::vector<bool> seen(plan.plans.size());
    for (size_t i = 0; i < plan.of_link.size(); ++i) {
      const size_t p = plan.of_link[i];
      if (seen[p]) continue;
      seen[p] = true;
      for (size_t op = 0; op < plan.plans[p].actions.size(); ++op) {
        ActionSet set = plan.plans[p].sets[op];
        set.op = name_of(chain_.links[i], op, set);
        const auto alike = std::ranges::count(plan.of_link, p) - 1;
        if (alike > 0) set.op += fmt::format(" and {} more like it", alike);
        const OpPolicy& policy = variants_[chain_.links[i].variant][op];
        apply(policy.on_reshard, set, plan.plans[p].actions[op], warnings);
      }
    }
    return plan;
  }

  void add_layers(const plan::ChainPlan& plan, OpPlanReport& report) {
    std::map<std::pair<size_t, size_t>, size_t> lines;  // (program, plan) -> entry of the report
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      const model::Layer& layer = model_.layers[layers_[i]];
      const auto key = std::pair(chain_.links[i].program, plan.of_link[i]);
      const auto [found, is_new] = lines.try_emplace(key, report.layers.size());
      if (is_new) {
        report.layers.push_back(layers_of(chain_.links[i], plan.plans[key.second], layer.block));
      }
      OpLayers& layers = report.layers[found->second];
      layers.numbers.push_back(layer.number);
      for (const OpLine& line : layers.ops) count(line);
    }
  }

  OpLayers layers_of(const plan::Link& link, const ProgramPlan& plan,
                     const std::string& block) const {
    const model::LayerProgram& program = programs_[link.program];
    OpLayers layers;
    layers.block = block;
    layers.bytes = plan.bytes;
    for (size_t op = 0; op < plan.actions.size(); ++op) {
      OpLine line = line_of(plan.sets[op], plan.actions[op], program.names[op]);
      const auto sources =
          action_sets(program.program, op, plan.available[op], plan.sets[op].parity);
      line.candidates =
          report_of(plan.sets[op], plan.actions[op], variants_[link.variant][op].allowed(), sources)
              .lines;
      layers.ops.push_back(std::move(line));
      layers.us += layers.ops.back().us;
    }
    return layers;
  }

  OpLine line_of(const ActionSet& set, const plan::Action& action, const std::string& made) const {
    OpLine line;
    line.op = set.op;
    line.made = made;
    line.result = action.results;
    line.bytes = action.bytes;
    for (size_t i = 0; i < set.operands.size(); ++i) {
      const plan::Operand& operand = set.operands[i];
      OpOperand one{operand.name, operand.shape, operand.on, {}};
      for (const size_t row : action.rows) one.needs.push_back(set.rows[row].operands[i]);
      line.operands.push_back(std::move(one));
    }
    for (const plan::OperandMove& move : moves_of(set, action)) {
      line.moves.push_back(move_of(set, move));
      line.us += line.moves.back().us;
    }
    return line;
  }

  OpMove move_of(const ActionSet& set, const plan::OperandMove& move) const {
    std::vector<std::string_view> axes;
    for (const int a : move.mesh_axes) axes.push_back(mesh_.axes()[static_cast<size_t>(a)].name);
    OpMove made{set.operands[move.operand].name,
                std::string(to_string(move.move)),
                fmt::format("{}", fmt::join(axes, "*")),
                move.to_axis,
                move.bytes,
                move.payload,
                0};
    if (!options_.hardware) return made;
    const auto collective = collective_of(move, mesh_, options_.hardware->domain());
    if (collective) made.us = time_of(*collective, *options_.hardware).us;
    return made;
  }

  void count(const OpLine& line) {
    for (const OpMove& move : line.moves) {
      if (move.payload == 0) continue;
      OpCollective& row = collectives_[{move.axes, move.move, move.payload}];
      row.axes = move.axes;
      row.op = move.move;
      row.payload = move.payload;
      row.bytes = move.bytes;
      row.us = move.us;
      row.count += 1;
    }
  }

  void compare(const plan::ChainPlan& chosen, OpPlanReport& report) const {
    const plan::ChainPlan best = plan_together(chain_, allowed_somewhere());
    OpComparison comparison;
    comparison.optimum_bytes = best.bytes;
    std::map<std::pair<size_t, size_t>, std::vector<i64>> layers;  // of pairs of plans
    std::map<std::pair<size_t, size_t>, size_t> links;
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      const auto key = std::pair(chosen.of_link[i], best.of_link[i]);
      layers[key].push_back(model_.layers[layers_[i]].number);
      links.try_emplace(key, i);
      comparison.chosen_bytes += exact_bytes(chosen.plans[key.first]);
    }
    std::vector<std::pair<size_t, std::pair<size_t, size_t>>> in_order;
    for (const auto& [key, link] : links) in_order.emplace_back(link, key);
    std::ranges::sort(in_order);
    for (const auto& [link, key] : in_order) {
      add_differences(chosen.plans[key.first], best.plans[key.second], link, layers.at(key),
                      comparison);
    }
    report.comparison = std::move(comparison);
  }

  static i64 exact_price(const ActionSet& set, const plan::Action& action) {
    ActionSet exact = set;
    exact.parity = plan::Parity::kExact;
    return price_of(exact, action.rows);
  }
  static i64 exact_bytes(const ProgramPlan& plan) {
    i64 total = 0;
    for (size_t op = 0; op < plan.actions.size(); ++op) {
      total += exact_price(plan.sets[op], plan.actions[op]);
    }
    return total;
  }

  void add_differences(const ProgramPlan& chosen, const ProgramPlan& best, size_t link,
                       const std::vector<i64>& numbers, OpComparison& comparison) const {
    const model::LayerProgram& program = programs_[chain_.links[link].program];
    for (size_t op = 0; op < chosen.actions.size(); ++op) {
      const std::string here = rows_text(chosen.sets[op], chosen.actions[op]);
      const std::string there = rows_text(best.sets[op], best.actions[op]);
      const i64 here_bytes = exact_price(chosen.sets[op], chosen.actions[op]);
      const i64 there_bytes = best.actions[op].bytes;
      if (here == there && here_bytes == there_bytes) continue;
      comparison.ops.push_back({model_.layers[layers_[link]].block, numbers, chosen.sets[op].op,
                                program.names[op], here, there, here_bytes, there_bytes});
    }
  }

  const OpPlanOptions& options_;
  const model::Model& model_;
  const mesh::Mesh& mesh_;
  std::vector<model::LayerProgram> programs_;
  plan::Chain chain_;
  std::vector<OpUse> uses_;                      ///< all ops of the model
  std::vector<std::vector<OpPolicy>> variants_;  ///< policies of the ops of a layer
  std::vector<size_t> layers_;                   ///< index into the model's layers of every link
  std::map<std::tuple<std::string, std::string, i64>, OpCollective> collectives_;
};

/// Throws kUnsupported for a model without a graph.
std::shared_ptr<const model::Graph> graph_of(const std::optional<mapping::ModelConfig>& config,
                                             std::shared_ptr<const model::Graph> own) {
  std::string why_not = "there is no config.json";
  if (config) {
    auto graph = model::find_graph(*config, std::move(own), why_not);
    if (graph != nullptr) return graph;
  }
  throw Error(ErrorCode::kUnsupported, "the ops cannot be planned: " + why_not)
      .help(
          "say what the model computes with --graph FILE, see "
          "shardtool-graph(5)");
}

void check(const OpPlanOptions& options) {
  const OpPolicy& policy = options.policies.policy;
  if (policy.is_joint() && policy.generation != plan::Parity::kExact) {
    throw Error(ErrorCode::kUsage, "the generations of the source system decide op by op")
        .help("use them with --solver greedy, none or partials");
  }
  if (policy.operand_budget && policy.solver != OpSolver::kGreedy) {
    throw Error(ErrorCode::kUsage,
                fmt::format("solver {} has no budget of operands", to_string(policy.solver)))
        .help("use --operand-budget with --solver greedy");
  }
}

}  // namespace

OpPlanReport plan_ops(const OpPlanOptions& options) {
  check(options);
  const LogicalCheckpoint source = open_logical(
      options.sources,
      {.mapping = options.mapping, .takes_config_alone = true, .graph = options.graph});
  const MappingChoice choice = base_choice(source, options.mapping);
  const AppliedMapping applied = apply_mapping(choice, source);
  const auto config = model_config(choice, source);
  const auto graph = graph_of(config, options.graph);
  PlacedTensors placed = placed_tensors(applied);
  const bool has_packed = !add_unpacked(*config, placed).empty();
  const model::Model bound = model::bind_model(graph, *config, placed.specs);
  OpPlanReport report;
  report.source = source.parts.front().path;
  report.family = graph->family;
  report.mesh = applied.resolution.mesh;
  report.batch = options.batch;
  report.prompt_len = options.prompt_len;
  report.solver = to_string(options.policies.policy.solver);
  report.generation = to_string(options.policies.policy.generation);
  if (options.hardware) report.profile = options.hardware->name;
  report.warnings = source.warnings();
  if (has_packed)
    report.warnings.emplace_back(
        "weights are stored packed: where the plan moves one, it counts the bytes of its floats");
  // The planner of ops decides itself whether weights are gathered.
  const model::LayoutOf layouts = placed.stored_layouts();
  auto programs =
      model::op_programs(bound, placed.specs, layouts, report.mesh,
                         {options.batch, options.prompt_len, dtype_of_norms(bound, placed.specs)});
  Planner(options, bound, report.mesh, std::move(programs)).fill(report);
  return report;
}

}  // namespace shardtool::api
