#include "cli/commands/reference/presets.h"

#include "lib/api/catalogue/presets.h"

namespace shardtool::cli {
namespace {

/// Names of all documents that `show` prints.
std::vector<std::string> shown_presets() {
  std::vector<std::string> names = api::preset_names();
  for (const api::FamilyInfo& family : api::list_presets().families) names.push_back(family.name);
  return names;
}

}  // namespace

Command presets_command(ShowArgs& args) {
  return {.name = "presets",
          .summary = "list the built-in mappings, or show one",
          .description =
              "A preset is a mapping file that is compiled in. Show one to read it, or "
              "extend it in a file of your own with \"extends\".",
          .examples = {"shardtool presets", "shardtool presets show llama"},
          .arguments = show_arguments(args, "preset"),
          .next_words = {{"show", shown_presets}},
          .run = [&args](Session& session) {
            return list_or_show(args, session, "presets", "preset", api::list_presets,
                                api::preset_text);
          }};
}

}  // namespace shardtool::cli
