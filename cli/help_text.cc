#include "cli/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/format_page.h"
#include "cli/session.h"
#include "cli/size_argument.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr size_t kTextWidth = 80;
constexpr size_t kShortExamples = 2;

/// Wraps `text` at kTextWidth columns.
std::string wrapped(std::string_view text) {
  std::string out;
  size_t column = 0;
  for (const std::string_view word : split_at(text, " ")) {
    const bool fits = column + 1 + word.size() <= kTextWidth;
    if (column > 0) out += fits ? ' ' : '\n';
    column = (column > 0 && fits ? column + 1 : 0) + word.size();
    out += word;
  }
  return out + "\n";
}

std::string argument_list(std::string_view title, const std::vector<Argument>& arguments,
                          bool positional, HelpLength length) {
  constexpr size_t kColumn = 26;
  std::string out;
  for (const auto& argument : arguments) {
    if (argument.positional() != positional) continue;
    if (argument.advanced && length == HelpLength::kShort) continue;
    const auto left = signature(argument);
    const auto fill = left.size() + 2 <= kColumn ? std::string(kColumn - left.size(), ' ')
                                                 : "\n" + std::string(kColumn + 2, ' ');
    const auto right = length == HelpLength::kLong ? full_help(argument) : argument.help;
    out += fmt::format("  {}{}{}\n", left, fill, right);
  }
  return out.empty() ? out : fmt::format("\n{}:\n{}", title, out);
}

std::string examples(const std::vector<std::string>& lines, HelpLength length,
                     size_t in_short = kShortExamples) {
  std::string out = "\nexamples:\n";
  const auto shown = length == HelpLength::kLong ? lines.size() : std::min(lines.size(), in_short);
  for (size_t i = 0; i < shown; ++i) out += fmt::format("  {}\n", lines[i]);
  return out;
}

std::string exit_codes() {
  std::string out = "\nexit codes:\n";
  for (const auto& [code, meaning] : kExitCodes) {
    out += fmt::format("  {:>3}  {}\n", static_cast<int>(code), meaning);
  }
  return out;
}

std::string command_help(const Command& command, const CommandTree& tree, HelpLength length) {
  auto out = fmt::format("{}\n\nusage: {}\n", command.summary, usage_line(command));
  for (const auto& longer : tree.commands) {
    if (longer.name.starts_with(command.name + " "))
      out += fmt::format("       {}\n", usage_line(longer));
  }
  out += examples(command.examples, length);
  if (length == HelpLength::kLong) out += "\n" + wrapped(command.description);
  out += argument_list("arguments", command.arguments, true, length);
  if (length == HelpLength::kShort) {
    out += argument_list("flags", command.arguments, false, length);
    return out + "\n--help tells more, and lists every flag.\n";
  }
  for (const auto& [title, flags] : flags_by_group(command.arguments)) {
    out += argument_list(title, flags, false, length);
  }
  return out + argument_list("global flags", tree.global, false, length) + exit_codes();
}

std::string program_help(const CommandTree& tree, HelpLength length) {
  std::string out =
      "cuts model checkpoints into per-device shards, and proves that they are right\n";
  out += "\nusage: shardtool COMMAND [arguments] [flags]\n";
  out += examples({"shardtool split models/llama-8b -o out/tp4 --mesh tp=4",
                   "shardtool inspect models/llama-8b", "shardtool merge out/tp4 -o full"},
                  length, 1);
  out += "\ncommands:\n";
  for (const auto& command : tree.commands) {
    if (command.name.find(' ') != std::string::npos) continue;  // in the help of its first word
    out += fmt::format("  {:<12}{}\n", command.name, command.summary);
  }
  if (length == HelpLength::kShort) {
    return out + "\n`shardtool help COMMAND` shows one of them; --help tells more.\n";
  }
  std::vector<std::string_view> pages;
  for (const FormatPage& page : format_pages()) pages.push_back(page.name());
  out += fmt::format("\npages, for `shardtool help PAGE`: {}\n", fmt::join(pages, ", "));
  return out + argument_list("global flags", tree.global, false, length) + "\n" +
         wrapped(kSizeSyntax) + exit_codes();
}

}  // namespace

std::string help_text(const Command* command, const CommandTree& tree, HelpLength length) {
  return command == nullptr ? program_help(tree, length) : command_help(*command, tree, length);
}

std::string usage_line(const Command& command) {
  auto line = "shardtool " + command.name;
  bool has_flags = false;
  for (const auto& argument : command.arguments) {
    has_flags |= !argument.positional() && !argument.required;
    if (argument.positional()) {
      const auto word = argument.name + (argument.repeatable() ? "..." : "");
      line += argument.required ? " " + word : " [" + word + "]";
    } else if (argument.required) {
      line += fmt::format(" {} {}", argument.short_name, argument.value);
    }
  }
  return line + (has_flags ? " [flags]" : "");
}

std::string signature(const Argument& argument) {
  if (argument.positional()) return argument.name + (argument.repeatable() ? "..." : "");
  auto text = argument.short_name.empty() ? "" : argument.short_name + ", ";
  text += argument.name;
  return argument.takes_value() ? text + " " + argument.value : text;
}

void print_help(Session& session, const std::string& text) {
  if (session.json()) {
    session.document("help", Status::kOk, [&text](JsonWriter& json) { json.field("text", text); });
  } else {
    session.out().write(text);
  }
}

std::string full_help(const Argument& argument) {
  auto text = argument.help;
  if (!argument.choices.empty()) text += fmt::format(" ({})", fmt::join(argument.choices, ", "));
  if (!argument.environment.empty()) text += fmt::format(" [{}]", argument.environment);
  return text;
}

}  // namespace shardtool::cli
