#include "cli/commands/reference/layouts.h"

#include "lib/api/catalogue/layouts.h"

namespace shardtool::cli {
namespace {

std::vector<std::string> layout_labels() {
  std::vector<std::string> labels;
  for (const api::LayoutInfo& layout : api::list_layouts()) labels.push_back(layout.label);
  return labels;
}

}  // namespace

Command layouts_command(ShowArgs& args) {
  return {.name = "layouts",
          .summary = "list the forms of files that engines load, or show one",
          .description =
              "split and reshard write them with --layout; one that is only read is named in front "
              "of a path: megatron:PATH. A layout belongs to one version of an engine: it has the "
              "names of the files, and which tensors they hold under which names. The list names "
              "the models and meshes with which the engine's own loader took the files, and got "
              "the parameters that it makes of the unsharded checkpoint.",
          .examples = {"shardtool layouts", "shardtool layouts show vllm@0.32",
                       "shardtool layouts show plain"},
          .arguments = show_arguments(args, "layout"),
          .next_words = {{"show", layout_labels}},
          .run = [&args](Session& session) {
            return list_or_show(args, session, "layouts", "layout", api::list_layouts,
                                api::layout_text);
          }};
}

}  // namespace shardtool::cli
