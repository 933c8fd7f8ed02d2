#include "cli/commands/reference/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/help_text.h"
#include "cli/man_page.h"
#include "cli/session.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

const Command& known_command(const std::string& name, const CommandTree& tree) {
  if (const auto* command = tree.find(name)) return *command;
  std::vector<std::string> names;
  for (const auto& command : tree.commands) names.push_back(command.name);
  Error error(ErrorCode::kUsage, fmt::format("there is no command '{}'", quote_for_message(name)));
  if (const auto hint = did_you_mean(name, names); !hint.empty()) error.help(hint);
  throw std::move(error).help("`shardtool help` lists the commands");
}

ExitCode run_help(const HelpArgs& args, const CommandTree& tree, Session& session) {
  const auto* topic = args.topic.empty()
                          ? nullptr
                          : &known_command(fmt::format("{}", fmt::join(args.topic, " ")), tree);
  const auto text = args.man ? man_page(topic, tree) : help_text(topic, tree, HelpLength::kLong);
  print_help(session, text);
  return ExitCode::kSuccess;
}

}  // namespace

Command help_command(HelpArgs& args, const CommandTree& tree) {
  return {.name = "help",
          .summary = "show help, of everything or of one command",
          .description =
              "The same as --help after the command. With --man it prints the source of "
              "the man page in scdoc's format.",
          .examples = {"shardtool help split"},
          .arguments =
              {{.name = "COMMAND", .help = "a command, of one or two words", .target = &args.topic},
               {.name = "--man", .help = "print the man page's scdoc source", .target = &args.man}},
          .run = [&args, &tree](Session& session) { return run_help(args, tree, session); }};
}

}  // namespace shardtool::cli
