#include "cli/commands/graphs.h"

#include "lib/api/graphs.h"

namespace shardtool::cli {

Command graphs_command(ShowArgs& args) {
  return {.name = "graphs",
          .summary = "list what models of each family compute, or show one",
          .description =
              "A graph says what a forward pass computes, in terms of the tensors' names; "
              "validate runs it and plan prices it. Show one to read it, or extend it in a "
              "file of your own for --graph: shardtool-graph(5) has the language.",
          .examples = {"shardtool graphs", "shardtool graphs show llama",
                       "shardtool graphs show llama > mine.json"},
          .arguments = show_arguments(args, "graph"),
          .run = [&args](Session& session) {
            return list_or_show(args, session, "graphs", "graph", api::list_graphs,
                                api::graph_text);
          }};
}

}  // namespace shardtool::cli
