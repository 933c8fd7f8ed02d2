#include "cli/commands/reference/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/format_page.h"
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
  for (const FormatPage& page : format_pages()) names.emplace_back(page.name());
  Error error(ErrorCode::kUsage,
              fmt::format("there is no command or page '{}'", quote_for_message(name)));
  if (const auto hint = did_you_mean(name, names); !hint.empty()) error.help(hint);
  throw std::move(error).help("`shardtool help` lists commands and pages");
}

const FormatPage* find_page(const std::string& name) {
  const auto pages = format_pages();
  const auto found = std::ranges::find(pages, name, &FormatPage::name);
  return found == pages.end() ? nullptr : &*found;
}

ExitCode run_help(const HelpArgs& args, const CommandTree& tree, Session& session) {
  const std::string name = fmt::format("{}", fmt::join(args.topic, " "));
  if (const FormatPage* const page = find_page(name)) {
    print_help(session, args.man ? std::string(page->scdoc) : plain_text(*page));
    return ExitCode::kSuccess;
  }
  const auto* topic = name.empty() ? nullptr : &known_command(name, tree);
  const auto text = args.man ? man_page(topic, tree) : help_text(topic, tree, HelpLength::kLong);
  print_help(session, text);
  return ExitCode::kSuccess;
}

}  // namespace

Command help_command(HelpArgs& args, const CommandTree& tree) {
  return {.name = "help",
          .summary = "show help, of everything, of one command, or of a file's format",
          .description =
              "The same as --help after the command. formats, graph, manifest, mapping and ops are "
              "the pages of section 5 of the manual: the formats that are read and written, and "
              "the files to write by hand. With --man it prints the source of the man page in "
              "scdoc's format.",
          .examples = {"shardtool help split", "shardtool help mapping"},
          .arguments =
              {{.name = "TOPIC",
                .help = "a command, of one or two words, or a page: formats, graph, manifest, "
                        "mapping or ops",
                .target = &args.topic},
               {.name = "--man", .help = "print the man page's scdoc source", .target = &args.man}},
          .run = [&args, &tree](Session& session) { return run_help(args, tree, session); }};
}

}  // namespace shardtool::cli
