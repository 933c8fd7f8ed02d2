#include "cli/commands/presets.h"

#include "cli/print/answer.h"
#include "shardtool/api/presets.h"
#include "shardtool/base/error.h"

namespace shardtool::cli {
namespace {

void show_preset(const std::string& name, Session& session) {
  const auto text = api::preset_text(name);
  if (!session.json()) return session.out().write(text);
  session.document("presets", Status::kOk,
                   [&](JsonWriter& json) { json.field("name", name).key("preset").raw(text); });
}

ExitCode run_presets(const PresetsArgs& args, Session& session) {
  if (args.action && !args.name) {
    throw Error(ErrorCode::kUsage, "presets show needs the name of a preset")
        .help("`shardtool presets` lists them");
  }
  if (args.name) {
    show_preset(*args.name, session);
  } else {
    answer(session, "presets", Status::kOk, api::list_presets());
  }
  return ExitCode::kSuccess;
}

}  // namespace

Command presets_command(PresetsArgs& args) {
  return {.name = "presets",
          .summary = "list the built-in mappings, or show one",
          .description =
              "A preset is a mapping file that is compiled in. Show one to read it, or "
              "extend it in a file of your own with \"extends\".",
          .examples = {"shardtool presets", "shardtool presets show llama"},
          .arguments = {{.name = "ACTION",
                         .help = "show: print one preset",
                         .target = &args.action,
                         .choices = {"show"}},
                        {.name = "NAME", .help = "its name", .target = &args.name}},
          .run = [&args](Session& session) { return run_presets(args, session); }};
}

}  // namespace shardtool::cli
