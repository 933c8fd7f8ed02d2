#include "cli/commands/reference/graphs.h"

#include "lib/api/catalogue/graph_skeleton.h"
#include "lib/api/catalogue/graphs.h"

namespace shardtool::cli {
namespace {

/// Returns the graph that the arguments ask for: a built-in one, or the start of a new one.
std::string graph_of(const ShowArgs& args, const std::string& name) {
  return args.action == "init" ? api::graph_skeleton(name) : api::graph_text(name);
}

std::vector<Argument> graph_arguments(ShowArgs& args) {
  return {{.name = "ACTION",
           .help = "show: print one graph; init: start one for a model that no graph knows; list: "
                   "print the names of all, the default",
           .target = &args.action,
           .choices = {"show", "init", "list"}},
          {.name = "NAME", .help = "its name; for init a checkpoint", .target = &args.name}};
}

std::vector<std::string> graph_names() {
  std::vector<std::string> names;
  for (const model::GraphHead& graph : api::list_graphs()) names.push_back(graph.name);
  return names;
}

}  // namespace

Command graphs_command(ShowArgs& args) {
  return {.name = "graphs",
          .summary = "list what models of each family compute, or show one",
          .description =
              "A graph says what a forward pass computes, in terms of the tensors' names; validate "
              "runs it and plan prices it. Show one to read it, or extend it in a file of your own "
              "for --graph: shardtool-graph(5) has the language. init SRC starts a graph from "
              "names and shapes of a checkpoint; the description of the graph lists what these do "
              "not tell and init assumed.",
          .examples = {"shardtool graphs", "shardtool graphs show llama",
                       "shardtool graphs show llama > mine.json",
                       "shardtool graphs init models/own > mine.json"},
          .arguments = graph_arguments(args),
          .next_words = {{"show", graph_names}},
          .run = [&args](Session& session) {
            return list_or_show(args, session, "graphs", "graph", api::list_graphs,
                                [&](const std::string& name) { return graph_of(args, name); });
          }};
}

}  // namespace shardtool::cli
