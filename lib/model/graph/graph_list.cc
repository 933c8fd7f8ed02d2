#include "lib/model/graph/graph_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <ranges>

#include "lib/base/json_reader.h"
#include "lib/base/text.h"
#include "lib/family/documents.h"
#include "lib/family/family.h"
#include "lib/model/graph/requirement.h"

namespace shardtool::model {
namespace {

GraphHead head_of(const family::Family& family) {
  return {std::string(family.name), family.computes.empty() ? family.description : family.computes,
          family.op_model_types, family.extends_ops};
}

/// Returns the documents that a user's graph names in "extends".
std::vector<std::string> extended_by(const GraphText& text) {
  std::vector<std::string> extends;
  JsonReader in(text.text, {text.place(), ErrorCode::kMappingSyntax}, 16);
  in.object({{"extends",
              [&] {
                if (in.kind() != JsonKind::kArray) return extends.push_back(in.string());
                in.begin_array();
                while (in.next_element()) extends.push_back(in.string());
              },
              false}});
  return extends;
}

/// Returns the family of this name. Throws an error with similar names: kUnknownName where a graph
/// has the name, kUsage where it was typed.
const family::Family& built_in(std::string_view name, ErrorCode unknown = ErrorCode::kUnknownName) {
  const family::Family* found = family::find_family(name);
  if (found != nullptr && found->has_ops) return *found;
  std::vector<std::string> names;
  for (const family::Family& family : family::families()) {
    if (family.has_ops) names.emplace_back(family.name);
  }
  const std::string hint = did_you_mean(name, names);
  throw Error(unknown, fmt::format("no graph is built in for '{}'", quote_for_message(name)))
      .help(hint.empty() ? "`shardtool graphs` lists them" : hint);
}

/// Collects a document and those that it extends. The last one named is the nearest.
void collect(const family::Family& family, std::vector<GraphText>& texts) {
  texts.push_back({family.name, family::graph_document(family.name)});
  for (const std::string& one : family.extends_ops | std::views::reverse)
    collect(built_in(one), texts);
}

Graph graph_of(const family::Family& family) {
  std::vector<GraphText> texts;
  collect(family, texts);
  return decode_graph(texts);
}

using Graphs = std::vector<std::shared_ptr<const Graph>>;

/// Returns the graphs for this model type. Cached, because plans of many layouts ask again.
Graphs graphs_of(const std::string& model_type) {
  static std::mutex mutex;
  static std::map<std::string, Graphs> decoded;
  const std::lock_guard lock(mutex);
  if (const auto known = decoded.find(model_type); known != decoded.end()) return known->second;
  Graphs found;
  for (const family::Family& family : family::families()) {
    if (std::ranges::find(family.op_model_types, model_type) == family.op_model_types.end())
      continue;
    found.push_back(std::make_shared<const Graph>(graph_of(family)));
  }
  return decoded.emplace(model_type, std::move(found)).first->second;
}

/// Returns why the graph cannot be used for the config; nullopt if it can.
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
  for (GraphHead& head : graph_heads()) {
    if (!head.model_types.empty()) names.push_back(std::move(head.name));
  }
  return names;
}

std::vector<GraphHead> graph_heads() {
  std::vector<GraphHead> heads;
  for (const family::Family& family : family::families()) {
    if (family.has_ops) heads.push_back(head_of(family));
  }
  return heads;
}

std::string_view graph_text(std::string_view name) {
  return family::graph_document(built_in(name, ErrorCode::kUsage).name);
}

Graph load_graph(std::string_view family) {
  return graph_of(built_in(family));
}

Graph decode_own_graph(std::string_view text, const std::string& file) {
  std::vector<GraphText> texts = {{file, text, file}};
  for (const std::string& one : extended_by(texts.front()) | std::views::reverse)
    collect(built_in(one), texts);
  return decode_graph(texts);
}

std::shared_ptr<const Graph> find_graph(const mapping::ModelConfig& config,
                                        std::shared_ptr<const Graph> own, std::string& why_not) {
  why_not.clear();
  if (own != nullptr) {
    const auto reason = unmet(*own, part_of(config, own->config_part));
    why_not = reason.value_or("");
    return reason ? nullptr : own;
  }
  const std::string type = config.model_type();
  const Graphs graphs = graphs_of(type);
  if (graphs.empty()) {
    why_not = type.empty() ? fmt::format("{} names no model_type", config.file())
                           : fmt::format("no graph is built in for the model type '{}'",
                                         quote_for_message(type, 60));
    return nullptr;
  }
  for (const auto& graph : graphs) {
    const auto reason = unmet(*graph, part_of(config, graph->config_part));
    if (!reason) return graph;
    if (why_not.empty()) why_not = *reason;
  }
  return nullptr;
}

}  // namespace shardtool::model
