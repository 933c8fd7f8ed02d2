#include "shardtool/model/graph_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <ranges>

#include "shardtool/base/json_reader.h"
#include "shardtool/base/text.h"
#include "shardtool/model/embedded_graphs.h"
#include "shardtool/model/requirement.h"

namespace shardtool::model {
namespace {

/// What a list of graphs needs of each.
struct Head {
  std::vector<std::string> extends;
  std::vector<std::string> model_types;
};

Head head_of(const GraphText& text) {
  Head head;
  JsonReader in(text.text, {"graph:" + std::string(text.name), ErrorCode::kMappingSyntax}, 16);
  const auto list = [&in](std::vector<std::string>& into) {
    in.begin_array();
    while (in.next_element()) into.push_back(in.string());
  };
  in.object({{"extends",
              [&] {
                if (in.kind() == JsonKind::kArray) return list(head.extends);
                head.extends = {in.string()};
              },
              false},
             {"model_types", [&] { list(head.model_types); }}});
  return head;
}

const GraphText& text_of(std::string_view family) {
  const auto all = embedded_graphs();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [family](const GraphText& text) { return text.name == family; });
  if (found != all.end()) return *found;
  Error error(ErrorCode::kUnknownName,
              fmt::format("no graph is built in for '{}'", quote_for_message(family)));
  error.help(fmt::format("families with a graph: {}", fmt::join(families(), ", ")));
  throw error;
}

/// A document and what it extends: the last one named is the nearest.
void collect(std::string_view name, std::vector<GraphText>& texts) {
  texts.push_back(text_of(name));
  const std::vector<std::string> extends = head_of(texts.back()).extends;
  for (const std::string& one : extends | std::views::reverse) collect(one, texts);
}

using Graphs = std::vector<std::shared_ptr<const Graph>>;

/// The graphs that name this model type. Decoded once: plans of many layouts ask again.
Graphs graphs_of(const std::string& model_type) {
  static std::mutex mutex;
  static std::map<std::string, Graphs> decoded;
  const std::lock_guard lock(mutex);
  if (const auto known = decoded.find(model_type); known != decoded.end()) return known->second;
  Graphs found;
  for (const GraphText& text : embedded_graphs()) {
    const std::vector<std::string> types = head_of(text).model_types;
    if (std::find(types.begin(), types.end(), model_type) == types.end()) continue;
    found.push_back(std::make_shared<const Graph>(load_graph(text.name)));
  }
  return decoded.emplace(model_type, std::move(found)).first->second;
}

/// What the config says that the graph does not compute.
std::optional<std::string> unmet(const Graph& graph, const mapping::ModelConfig& config) {
  const auto* requirement = first_unmet(graph.requires_config, config);
  if (requirement == nullptr) return std::nullopt;
  const auto& [path, allowed] = *requirement;
  return fmt::format("{} says {} = {}, and the graph of {} computes {}", config.file(), path,
                     quote_for_message(said_at(path, config), 60), graph.family,
                     fmt::join(allowed, " or "));
}

}  // namespace

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const GraphText& text : embedded_graphs()) {
    if (!head_of(text).model_types.empty()) names.emplace_back(text.name);
  }
  return names;
}

Graph load_graph(std::string_view family) {
  std::vector<GraphText> texts;
  collect(family, texts);
  return decode_graph(texts);
}

std::shared_ptr<const Graph> find_graph(const mapping::ModelConfig& config, std::string& why_not) {
  const std::string type = config.model_type();
  const Graphs graphs = graphs_of(type);
  if (graphs.empty()) {
    why_not = type.empty() ? fmt::format("{} names no model_type", config.file())
                           : fmt::format("no graph is built in for the model type '{}'",
                                         quote_for_message(type, 60));
    return nullptr;
  }
  why_not.clear();
  for (const auto& graph : graphs) {
    const auto reason = unmet(*graph, part_of(config, graph->config_part));
    if (!reason) return graph;
    if (why_not.empty()) why_not = *reason;
  }
  return nullptr;
}

}  // namespace shardtool::model
