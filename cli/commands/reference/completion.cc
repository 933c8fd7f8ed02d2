#include "cli/commands/reference/completion.h"

#include "cli/completion.h"
#include "cli/session.h"

namespace shardtool::cli {
namespace {

ExitCode run_completion(const CompletionArgs& args, const CommandTree& tree, Session& session) {
  const auto script = completion_script(args.shell, tree);
  if (session.json()) {
    session.document("completion", Status::kOk,
                     [&script](JsonWriter& json) { json.field("script", script); });
  } else {
    session.out().write(script);
  }
  return ExitCode::kSuccess;
}

}  // namespace

Command completion_command(CompletionArgs& args, const CommandTree& tree) {
  return {.name = "completion",
          .summary = "print a completion script for a shell",
          .description = "The script needs no other file. Load it from the shell's start-up file.",
          .examples = {"source <(shardtool completion bash)",
                       "shardtool completion fish > ~/.config/fish/completions/shardtool.fish"},
          .arguments = {{.name = "SHELL",
                         .help = "which shell",
                         .target = &args.shell,
                         .required = true,
                         .choices = {"bash", "zsh", "fish"}}},
          .run = [&args, &tree](Session& session) { return run_completion(args, tree, session); }};
}

}  // namespace shardtool::cli
