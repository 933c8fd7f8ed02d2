// Sizes of graphs, declared in bind.h.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "lib/base/error.h"
#include "lib/model/bind.h"
#include "lib/model/graph/requirement.h"

namespace shardtool::model {
namespace {

/// The sizes of a graph by name, each computed once.
class Sizes {
 public:
  Sizes(const Graph& graph, const mapping::ModelConfig& config) : graph_(graph), config_(config) {
    for (const auto& [name, size] : graph.sizes) {
      if (is_known(name)) static_cast<void>(of(name));
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
  std::map<std::string, i64> take() && { return std::move(values_); }

 private:
  /// Returns true if the config has every value of the size. False for sizes of parts that the
  /// model lacks, and if a value is 0.
  bool is_known(const std::string& name) {
    if (const auto found = known_.find(name); found != known_.end()) return found->second;
    const auto size = graph_.sizes.find(name);
    if (size == graph_.sizes.end()) return known_[name] = false;
    const auto link = chain_.enter(name, size->second.place);
    return known_[name] = is_known(size->second);
  }
  bool is_known(const mapping::SizeExpression& size) {
    for (const mapping::SizeProduct& product : size.sum) {
      if (!is_known(product.first)) return size.fallback && is_known(*size.fallback);
      for (const mapping::SizeStep& step : product.rest) {
        if (!is_known(step)) return size.fallback && is_known(*size.fallback);
      }
    }
    return true;
  }
  bool is_known(const mapping::SizeStep& step) {
    const bool is_number = step.op == mapping::SizeOp::kTimesDown &&
                           step.atom.kind == mapping::SizeAtom::Kind::kConfig;
    if (!is_number) return is_known(step.atom);
    const nlohmann::json* value = config_.find(step.atom.name);
    return value != nullptr && !value->is_null();
  }
  bool is_known(const mapping::SizeAtom& atom) {
    if (atom.kind == mapping::SizeAtom::Kind::kConfig) {
      const nlohmann::json* value = config_.find(atom.name);
      const bool is_none = value != nullptr && *value == 0;
      return !is_none && config_.size(atom.name).has_value();
    }
    return atom.kind != mapping::SizeAtom::Kind::kAxis || is_known(atom.name);
  }

  const Graph& graph_;
  const mapping::ModelConfig& config_;
  mapping::SizeChain chain_;
  std::map<std::string, bool> known_;
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

}  // namespace

std::map<std::string, i64> sizes_of(const Graph& graph, const mapping::ModelConfig& config) {
  return Sizes(graph, config).take();
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
  mapping::ModelConfig part = part_of(config, graph.config_part);
  auto values = sizes_of(graph, part);
  const ops::ModelSizes sizes{graph.family, std::move(part), std::move(values)};
  std::set<i64> extents;
  const auto add_weights = [&](const std::vector<WeightRef>& weights) {
    for (const WeightRef& weight : weights) {
      for (const Dim& dim : weight.shape) {
        try {
          extents.insert(sizes.size(dim));
        } catch (const Error&) {
          continue;
        }
      }
    }
  };
  const auto add_ways = [&](const std::vector<Alternatives>& stretches) {
    for (const Alternatives& ways : stretches) {
      for (const Way& way : ways) {
        for (const Op& op : way.ops) {
          add_weights(op.weights);
          if (const auto* experts = std::get_if<Experts>(&op.kind)) {
            for (const Experts::Form& form : experts->forms) add_weights(form.weights);
          }
        }
      }
    }
  };
  for (const Stack& stack : graph.stacks) {
    add_ways(stack.start);
    for (const Block& block : stack.blocks) add_ways(block.stretches);
    if (stack.end) add_ways(stack.end->stretches);
  }
  add_ways(graph.end);
  return extents;
}

}  // namespace shardtool::model
