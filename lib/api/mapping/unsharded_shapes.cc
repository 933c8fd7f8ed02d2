#include "lib/api/mapping/unsharded_shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/model/config_tensors.h"
#include "lib/model/graph/graph_list.h"

namespace shardtool::api {

UnshardedShapes::UnshardedShapes(const mapping::Mapping& mapping,
                                 const mapping::ModelConfig& config,
                                 std::span<const TensorSpec> candidates)
    : config_(config), companions_(mapping) {
  std::string why_not;
  const auto graph = model::find_graph(config, why_not);
  if (graph == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                "the sizes of the tensors that share one in the files are not known")
        .at({config.file(), 0, 0, {}})
        .note("found", why_not)
        .help("`shardtool graphs` lists the models whose config.json gives the sizes")
        .help("take the checkpoint that the engine loaded");
  }
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const TensorSpec& spec : candidates) {
    if (known.insert(spec.name).second) names.push_back(spec.name);
    std::vector<mapping::CompanionMatch> matches = companions_.find(spec);
    if (!matches.empty()) beside_.emplace(spec.name, std::move(matches.front()));
  }
  for (const auto& [name, match] : beside_) {
    if (known.insert(match.leader).second) names.push_back(match.leader);
  }
  // The graph reads one spelling of a name; without those that it read, it reads the next one.
  for (size_t read = 1; read > 0;) {
    const auto shapes = model::config_shapes(graph, config, names);
    read = of_graph_.size();
    for (size_t n = 0; n < names.size(); ++n) {
      if (shapes[n]) of_graph_.emplace(names[n], *shapes[n]);
    }
    read = of_graph_.size() - read;
    std::erase_if(names, [this](const std::string& name) { return of_graph_.contains(name); });
  }
  // A weight of packed codes is a tensor of its own and is stored in another shape.
  std::erase_if(beside_, [this](const auto& entry) {
    const auto& [name, match] = entry;
    return !of_graph_.contains(match.leader) || (of_graph_.contains(name) && match.leader != name);
  });
}

bool UnshardedShapes::has(const std::string& name) const {
  return of_graph_.contains(name) || beside_.contains(name);
}

Shape UnshardedShapes::of(const TensorSpec& spec) const {
  const auto beside = beside_.find(spec.name);
  if (beside != beside_.end()) {
    return shape_beside(beside->second, of_graph_.at(beside->second.leader), spec);
  }
  const auto found = of_graph_.find(spec.name);
  return found == of_graph_.end() ? spec.shape : found->second;
}

/// Throws if several shapes are possible: of numbers side by side nothing tells which axes each
/// had.
Shape UnshardedShapes::shape_beside(const mapping::CompanionMatch& match, const Shape& leader,
                                    const TensorSpec& spec) const {
  const mapping::CompanionSizes sizes{
      [this](const mapping::SizeExpression& size) {
        return evaluate(size, {&config_, [&size](const std::string& axis) -> i64 {
                                 throw Error(ErrorCode::kSizeExpression,
                                             fmt::format("no size of '{}' is known", axis))
                                     .at(size.place);
                               }});
      },
      &config_};
  std::vector<Shape> shapes = companions_.shapes(match.companion, leader, sizes);
  if (shapes.size() > 1) {
    const size_t axes = std::max<size_t>(spec.shape.size(), 1);
    std::erase_if(shapes,
                  [axes](const Shape& shape) { return std::max<size_t>(shape.size(), 1) != axes; });
  }
  if (shapes.size() == 1) return shapes.front();
  std::vector<std::string> possible;
  for (const Shape& shape : shapes) possible.push_back(to_string(shape));
  throw Error(ErrorCode::kUnsupported,
              "nothing says which shape a tensor had that is stored with others")
      .tensor(quote_for_message(spec.name))
      .note("found", to_string(spec.shape))
      .note("possible", possible.empty() ? "none" : fmt::format("{}", fmt::join(possible, ", ")))
      .help("take the checkpoint that the engine loaded");
}

}  // namespace shardtool::api
