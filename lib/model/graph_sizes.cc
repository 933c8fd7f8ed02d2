// Sizes of graphs, declared in bind.h.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/model/bind.h"
#include "lib/model/graph/requirement.h"

namespace shardtool::model {
namespace {

/// A size or value of config.json: known, unusable (with the error), or absent.
struct State {
  bool is_known = false;
  std::optional<Error> error = {};

  bool is_absent() const { return !is_known && !error; }
};

/// The sizes of a graph by name, each computed once.
class Sizes {
 public:
  Sizes(const Graph& graph, mapping::ModelConfig config)
      : graph_(graph), config_(std::move(config)) {
    for (const auto& [name, size] : graph.sizes) {
      if (state_of(name).is_known) static_cast<void>(of(name));
    }
  }

  i64 of(const std::string& name) {
    if (const auto found = values_.find(name); found != values_.end()) return found->second;
    const auto size = graph_.sizes.find(name);
    if (size == graph_.sizes.end()) {
      throw Error(ErrorCode::kInternal,
                  fmt::format("the graph of {} has no size '{}'", graph_.family, name));
    }
    const auto link = chain_.enter(name, size->second.place);
    const mapping::SizeScope scope{&config_, [this](const std::string& axis) { return of(axis); }};
    return values_[name] = evaluate(size->second, scope);
  }
  ops::ModelSizes take() && {
    ops::ModelSizes sizes{graph_.family, std::move(config_), std::move(values_), {}, {}};
    for (auto& [name, state] : states_) {
      if (state.error) sizes.unusable.emplace(name, std::move(*state.error));
      const auto size = graph_.sizes.find(name);
      if (state.is_absent() && size != graph_.sizes.end()) {
        sizes.absent.emplace(name, absent(name, size->second));
      }
    }
    return sizes;
  }

 private:
  Error absent(const std::string& name, const mapping::SizeExpression& size) const {
    return Error(ErrorCode::kConfig,
                 fmt::format("config.json does not give the size '{}', which the graph of {} needs",
                             name, graph_.family))
        .at(size.place)
        .note("size", size.text);
  }
  const State& state_of(const std::string& name) {
    if (const auto found = states_.find(name); found != states_.end()) return found->second;
    const auto size = graph_.sizes.find(name);
    if (size == graph_.sizes.end()) return states_[name] = {};
    const auto link = chain_.enter(name, size->second.place);
    State state = state_of(size->second);
    return states_[name] = std::move(state);
  }
  State state_of(const mapping::SizeExpression& size) {
    std::optional<Error> error;
    size_t zeros = 0;
    for (const mapping::SizeProduct& product : size.sum) {
      for (const State& state : states_of(product)) {
        if (state.is_absent()) return size.fallback ? state_of(*size.fallback) : State{};
        if (!state.error || error) continue;
        // A config value of 0 that is one of several terms is usable, as for mapping::evaluate.
        const bool is_term = size.sum.size() > 1 && product.rest.empty() && is_zero(product.first);
        if (is_term && ++zeros < size.sum.size()) continue;
        error = state.error;
      }
    }
    return {!error, std::move(error)};
  }
  std::vector<State> states_of(const mapping::SizeProduct& product) {
    std::vector<State> states = {state_of(product.first)};
    for (const mapping::SizeStep& step : product.rest) states.push_back(state_of(step));
    return states;
  }
  State state_of(const mapping::SizeStep& step) {
    const bool is_number = step.op == mapping::SizeOp::kTimesDown &&
                           step.atom.kind == mapping::SizeAtom::Kind::kConfig;
    if (!is_number) return state_of(step.atom);
    const nlohmann::json* value = config_.find(step.atom.name);
    return {value != nullptr && !value->is_null()};
  }
  State state_of(const mapping::SizeAtom& atom) {
    if (atom.kind == mapping::SizeAtom::Kind::kInteger) return {true};
    if (atom.kind == mapping::SizeAtom::Kind::kAxis) return state_of(atom.name);
    try {
      return {config_.size(atom.name).has_value()};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kSizeExpression) throw;
      return {false, error};
    }
  }
  bool is_zero(const mapping::SizeAtom& atom) const {
    return atom.kind == mapping::SizeAtom::Kind::kConfig && *config_.find(atom.name) == 0;
  }

  const Graph& graph_;
  mapping::ModelConfig config_;
  mapping::SizeChain chain_;
  std::map<std::string, State> states_;
  std::map<std::string, i64> values_;
};

/// Appends the paths in config.json that a size of the graph depends on.
void add_config_keys(const Graph& graph, const std::string& size, std::set<std::string>& seen,
                     std::vector<std::string>& keys) {
  const auto found = graph.sizes.find(size);
  if (found == graph.sizes.end() || !seen.insert(size).second) return;
  const auto add = [&](const mapping::SizeAtom& atom) {
    if (atom.kind == mapping::SizeAtom::Kind::kConfig) keys.push_back(atom.name);
    if (atom.kind == mapping::SizeAtom::Kind::kAxis) add_config_keys(graph, atom.name, seen, keys);
  };
  for (const mapping::SizeProduct& product : found->second.sum) {
    add(product.first);
    for (const mapping::SizeStep& step : product.rest) add(step.atom);
  }
}

/// Collects the extents of all stored axes of weights, as far as config.json gives them.
class ExtentCollector {
 public:
  explicit ExtentCollector(ops::ModelSizes sizes) : sizes_(std::move(sizes)) {}

  /// Adds the weights of all variants.
  void add(const std::vector<Alternatives>& stretches) {
    for (const Alternatives& ways : stretches) {
      for (const Way& way : ways) {
        for (const Op& op : way.ops) add(op);
      }
    }
  }
  std::set<i64> take() && { return std::move(extents_); }

 private:
  void add(const Op& op) {
    add(op.weights);
    if (const auto* experts = std::get_if<Experts>(&op.kind)) {
      for (const Experts::Form& form : experts->forms) add(form.weights);
    }
  }
  void add(const std::vector<WeightRef>& weights) {
    for (const WeightRef& weight : weights) {
      for (const Dim& dim : weight.shape) add(dim);
    }
  }
  void add(const Dim& dim) {
    try {
      extents_.insert(sizes_.size(dim));
    } catch (const Error&) {
      return;  // config.json does not give this size
    }
  }

  ops::ModelSizes sizes_;
  std::set<i64> extents_;
};

}  // namespace

ops::ModelSizes sizes_of(const Graph& graph, const mapping::ModelConfig& config) {
  return Sizes(graph, part_of(config, graph.config_part)).take();
}

std::vector<std::string> config_keys(const Graph& graph, const Dim& dim) {
  std::set<std::string> seen;
  std::vector<std::string> keys;
  for (const mapping::FoldedAxes& section : dim.sections) {
    for (const mapping::Factor& factor : section.factors)
      add_config_keys(graph, factor.axis, seen, keys);
  }
  return keys;
}

std::set<i64> axis_extents(const Graph& graph, const mapping::ModelConfig& config) {
  ExtentCollector extents(sizes_of(graph, config));
  for (const Stack& stack : graph.stacks) {
    extents.add(stack.start);
    for (const Block& block : stack.blocks) extents.add(block.stretches);
    if (stack.end) extents.add(stack.end->stretches);
  }
  extents.add(graph.end);
  return std::move(extents).take();
}

}  // namespace shardtool::model
