#include "cli/man_page.h"

#include <fmt/format.h>

#include "cli/help_text.h"

namespace shardtool::cli {
namespace {

/// Escapes scdoc markup.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '_' || c == '*' || c == '\\' || c == '#' || c == '`') out += '\\';
    out += c;
  }
  return out;
}

std::string arguments(std::string_view title, const std::vector<Argument>& list, bool positional) {
  std::string out;
  for (const auto& argument : list) {
    if (argument.positional() != positional) continue;
    out += fmt::format("*{}*\n\t{}\n\n", plain(signature(argument)), plain(full_help(argument)));
  }
  return out.empty() ? out : fmt::format("# {}\n\n{}", title, out);
}

std::string examples(const std::vector<std::string>& lines) {
  std::string out = "# EXAMPLES\n\n";
  for (const auto& line : lines) out += fmt::format("\t{}\n\n", plain(line));
  return out;
}

std::string exit_status() {
  std::string out = "# EXIT STATUS\n\n";
  for (const auto& [code, meaning] : kExitCodes) {
    out += fmt::format("*{}*\n\t{}\n\n", static_cast<int>(code), plain(meaning));
  }
  return out;
}

std::string command_page(const Command& command, const CommandTree& tree) {
  auto out = fmt::format("shardtool-{}(1)\n\n# NAME\n\nshardtool-{} - {}\n\n", command.name,
                         command.name, plain(command.summary));
  out += fmt::format("# SYNOPSIS\n\n*{}*\n\n", plain(usage_line(command)));
  out += fmt::format("# DESCRIPTION\n\n{}\n\n", plain(command.description));
  out += examples(command.examples);
  out += arguments("ARGUMENTS", command.arguments, true);
  out += arguments("FLAGS", command.arguments, false);
  out += arguments("GLOBAL FLAGS", tree.global, false);
  return out + exit_status() + "# SEE ALSO\n\n*shardtool*(1), *shardtool-mapping*(5)\n";
}

std::string program_page(const CommandTree& tree) {
  std::string out =
      "shardtool(1)\n\n# NAME\n\nshardtool - cut model checkpoints into per-device shards\n\n"
      "# SYNOPSIS\n\n*shardtool* COMMAND [arguments] [flags]\n\n"
      "# DESCRIPTION\n\nReads safetensors checkpoints of any size within a fixed budget of memory, "
      "cuts every tensor by the rules of a mapping file, and writes one part per device with a "
      "manifest. What was split can be merged and resharded, byte for byte. Outputs appear "
      "complete or not at all.\n\n# COMMANDS\n\n";
  for (const auto& command : tree.commands) {
    out += fmt::format("*shardtool-{}*(1)\n\t{}\n\n", command.name, plain(command.summary));
  }
  return out + arguments("GLOBAL FLAGS", tree.global, false) + exit_status() +
         "# SEE ALSO\n\n*shardtool-mapping*(5), *shardtool-graph*(5), *shardtool-manifest*(5)\n";
}

}  // namespace

std::string man_page(const Command* command, const CommandTree& tree) {
  return command == nullptr ? program_page(tree) : command_page(*command, tree);
}

}  // namespace shardtool::cli
