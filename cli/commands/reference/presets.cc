#include "cli/commands/reference/presets.h"

#include "lib/api/catalogue/presets.h"

namespace shardtool::cli {

Command presets_command(ShowArgs& args) {
  return {.name = "presets",
          .summary = "list the built-in mappings, or show one",
          .description =
              "A preset is a mapping file that is compiled in. Show one to read it, or "
              "extend it in a file of your own with \"extends\".",
          .examples = {"shardtool presets", "shardtool presets show llama"},
          .arguments = show_arguments(args, "preset"),
          .run = [&args](Session& session) {
            return list_or_show(args, session, "presets", "preset", api::list_presets,
                                api::preset_text);
          }};
}

}  // namespace shardtool::cli
