#include "cli/app.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <variant>

#include "cli/commands/version.h"
#include "cli/help_text.h"
#include "cli/launch.h"
#include "cli/print/output.h"
#include "cli/command_line.h"
#include "lib/base/error.h"
#include "lib/base/peak_memory.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

void check_choice(const Argument& argument, const std::string& value) {
  const auto& choices = argument.choices;
  if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  Error error(ErrorCode::kUsage, fmt::format("{} '{}' is not one of {}", argument.name,
                                             quote_for_message(value), fmt::join(choices, ", ")));
  if (const auto hint = did_you_mean(value, choices); !hint.empty()) error.help(hint);
  throw error;
}

void store(const Argument& argument, const std::vector<std::string>& values) {
  if (auto* const* one = std::get_if<std::string*>(&argument.target)) **one = values.back();
  if (auto* const* maybe = std::get_if<std::optional<std::string>*>(&argument.target)) {
    **maybe = values.back();
  }
  if (auto* const* all = std::get_if<std::vector<std::string>*>(&argument.target)) **all = values;
}

/// Declares one argument to the parser. Values stay texts: the commands parse them, with better
/// messages.
void declare(CLI::App& app, const Argument& argument) {
  const auto names = argument.short_name.empty()
                         ? argument.name
                         : fmt::format("{},{}", argument.short_name, argument.name);
  if (auto* const* flag = std::get_if<bool*>(&argument.target)) {
    app.add_flag(names, **flag);
    return;
  }
  const auto take = [&argument](const CLI::results_t& values) {
    for (const auto& value : values) check_choice(argument, value);
    store(argument, values);
    return true;
  };
  auto* option = app.add_option(names, take);
  if (argument.repeatable()) {
    option->expected(1, CLI::detail::expected_max_vector_size);
    option->allow_extra_args(argument.positional());
  }
  if (!argument.environment.empty()) option->envname(argument.environment);
}

/// Prefixes a word "[a,b]" with "./": CLI11 would read it as a list of two words, and the path
/// stays the same.
std::vector<std::string> parser_words(const std::vector<Word>& words) {
  std::vector<std::string> texts;
  for (const auto& word : words) {
    const bool bracketed = word.role == Role::kPositional && word.text.starts_with('[');
    texts.push_back(bracketed ? "./" + word.text : word.text);
  }
  std::reverse(texts.begin(), texts.end());  // CLI11 takes them from the back
  return texts;
}

/// Returns the command that was typed, or null.
const Command* typed_command(const std::vector<Word>& words, const CommandTree& tree) {
  const auto word = std::find_if(words.begin(), words.end(),
                                 [](const Word& w) { return w.role == Role::kCommand; });
  return word == words.end() ? nullptr : tree.find(word->text);
}

/// Fills the arguments' targets and returns the typed command, or null. Only this command is
/// declared to the parser: declaring all of them takes longer than most commands.
const Command* parse(const Commands& commands, const std::vector<std::string>& words) {
  const auto read = read_words(words, commands.tree());
  const Command* command = typed_command(read, commands.tree());
  CLI::App app;
  app.set_help_flag();
  for (const auto& argument : commands.tree().global) declare(app, argument);
  if (command != nullptr) {
    auto* sub = app.add_subcommand(command->name)->fallthrough();
    sub->set_help_flag();
    for (const auto& argument : command->arguments) declare(*sub, argument);
  }
  try {
    auto texts = parser_words(read);
    app.parse(texts);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kUsage, quote_for_message(error.what()))
        .help("`shardtool help` lists commands, `shardtool help COMMAND` what one takes");
  }
  return command;
}

bool absent(const Argument& argument) {
  if (auto* const* one = std::get_if<std::string*>(&argument.target)) return (*one)->empty();
  if (auto* const* all = std::get_if<std::vector<std::string>*>(&argument.target)) {
    return (*all)->empty();
  }
  return false;
}

void require_arguments(const Command& command) {
  std::vector<std::string> missing;
  for (const auto& argument : command.arguments) {
    if (argument.required && absent(argument)) missing.push_back(signature(argument));
  }
  if (missing.empty()) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("'{}' needs {}", command.name, fmt::join(missing, " and ")))
      .help(fmt::format("usage: {}", usage_line(command)));
}

void report_run(const Session& session, double seconds) {
  if (!session.verbose() || session.json()) return;
  const auto line =
      fmt::format("took {:.3f} s, peak memory {}\n", seconds, format_bytes(peak_memory_bytes()));
  write_to_stderr(line);
}

ExitCode run_command(const Command& command, const Commands& commands, Session& session) {
  const auto& global = commands.global();
  if (global.long_help || global.short_help) {
    const auto length = global.long_help ? HelpLength::kLong : HelpLength::kShort;
    session.out().write(help_text(&command, commands.tree(), length));
    return ExitCode::kSuccess;
  }
  require_arguments(command);
  remember_options(command);
  const auto start = std::chrono::steady_clock::now();
  const auto code = command.run(session);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  report_run(session, took.count());
  return code;
}

ExitCode run_without_command(const Commands& commands, Session& session) {
  const auto& global = commands.global();
  if (global.version) return run_version(session);
  const auto length = global.long_help ? HelpLength::kLong : HelpLength::kShort;
  const auto text = help_text(nullptr, commands.tree(), length);
  if (global.long_help || global.short_help) {
    session.out().write(text);
    return ExitCode::kSuccess;
  }
  if (session.json()) {
    throw Error(ErrorCode::kUsage, "no command was given")
        .help("`shardtool -h` lists the commands");
  }
  write_to_stderr(text);
  return ExitCode::kUsage;
}

}  // namespace

ExitCode run_app(const Commands& commands, const std::vector<std::string>& words) {
  const auto* command = parse(commands, words);
  Session session(commands.global());
  const bool version = command != nullptr && commands.global().version;
  const auto code = version              ? run_version(session)
                    : command != nullptr ? run_command(*command, commands, session)
                                         : run_without_command(commands, session);
  session.out().flush();
  return code;
}

}  // namespace shardtool::cli
