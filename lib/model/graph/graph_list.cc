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
#include "lib/model/graph/embedded_graphs.h"
#include "lib/model/graph/requirement.h"

namespace shardtool::model {
namespace {

GraphHead head_of(const GraphText& text) {
  GraphHead head{std::string(text.name), {}, {}, {}};
  JsonReader in(text.text, {text.place(), ErrorCode::kMappingSyntax}, 16);
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
             {"description", [&] { head.description = in.string(); }},
             {"model_types", [&] { list(head.model_types); }}});
  return head;
}

const GraphText& built_in(std::string_view name) {
  const auto all = embedded_graphs();
  const auto found = std::ranges::find(all, name, &GraphText::name);
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const GraphText& text : all) names.emplace_back(text.name);
  const std::string hint = did_you_mean(name, names);
  throw Error(ErrorCode::kUnknownName,
              fmt::format("no graph is built in for '{}'", quote_for_message(name)))
      .help(hint.empty() ? "`shardtool graphs` lists them" : hint);
}

/// A document and what it extends: the last one named is the nearest.
void collect(const GraphText& text, std::vector<GraphText>& texts) {
  texts.push_back(text);
  const std::vector<std::string> extends = head_of(text).extends;
  for (const std::string& one : extends | std::views::reverse) collect(built_in(one), texts);
}

Graph with_what_it_extends(const GraphText& text) {
  std::vector<GraphText> texts;
  collect(text, texts);
  return decode_graph(texts);
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
  for (GraphHead& head : graph_heads()) {
    if (!head.model_types.empty()) names.push_back(std::move(head.name));
  }
  return names;
}

std::vector<GraphHead> graph_heads() {
  std::vector<GraphHead> heads;
  for (const GraphText& text : embedded_graphs()) heads.push_back(head_of(text));
  return heads;
}

std::string_view graph_text(std::string_view name) {
  return built_in(name).text;
}

Graph load_graph(std::string_view family) {
  return with_what_it_extends(built_in(family));
}

Graph decode_own_graph(std::string_view text, const std::string& file) {
  return with_what_it_extends({file, text, file});
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
