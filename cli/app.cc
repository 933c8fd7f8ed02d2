#include "cli/app.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <optional>

#include "cli/args/engine_args.h"
#include "cli/command_line.h"
#include "cli/commands/reference/version.h"
#include "cli/help_text.h"
#include "cli/launch.h"
#include "cli/print/output.h"
#include "lib/base/error.h"
#include "lib/base/peak_memory.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

void require_arguments(const Command& command) {
  std::vector<std::string> missing;
  for (const auto& argument : command.arguments) {
    if (argument.required && !argument.is_given()) missing.push_back(signature(argument));
  }
  if (missing.empty()) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("'{}' needs {}", command.name, fmt::join(missing, " and ")))
      .help(fmt::format("usage: {}", usage_line(command)));
}

void report_run(const Session& session, double seconds) {
  if (!session.verbose() || session.json()) return;
  const i64 peak = peak_memory_bytes();
  const auto memory = peak > 0 ? fmt::format(", peak memory {}", format_bytes(peak)) : "";
  write_to_stderr(fmt::format("took {:.3f} s{}\n", seconds, memory));
}

ExitCode run_command(const Command& command, const Commands& commands, Session& session) {
  const auto& global = commands.global();
  if (global.long_help || global.short_help) {
    const auto length = global.long_help ? HelpLength::kLong : HelpLength::kShort;
    print_help(session, help_text(&command, commands.tree(), length));
    return ExitCode::kSuccess;
  }
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
    print_help(session, text);
    return ExitCode::kSuccess;
  }
  if (session.json()) {
    throw Error(ErrorCode::kUsage, "no command was given")
        .help("`shardtool -h` lists the commands");
  }
  write_to_stderr(text);
  return ExitCode::kUsage;
}

/// True if the words ask for a text about the program instead of a run.
bool asks_for_text(const GlobalArgs& global) {
  return global.version || global.long_help || global.short_help;
}

/// Writes what was typed to the arguments' targets and returns the command, or null.
const Command* filled(const Commands& commands, const std::vector<std::string>& words) {
  const CommandLine line = parse_words(words, commands.tree());
  fill_targets(line, commands.tree());
  const bool runs = line.command != nullptr && !asks_for_text(commands.global());
  if (runs) require_arguments(*line.command);
  return line.command;
}

/// Returns the meeting of a launch with an invalid command line; nullopt if it does not say which.
std::optional<comm::EngineChoice> known_meeting(const Commands& commands,
                                                const std::vector<std::string>& words) {
  const Command* const command = fill_known_targets(words, commands.tree());
  if (command == nullptr || !command->meeting) return std::nullopt;
  try {
    return command->meeting();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Like filled(); the other processes of a launch hear of the error instead of waiting for this
/// one.
const Command* understood(const Commands& commands, const std::vector<std::string>& words) {
  try {
    return filled(commands, words);
  } catch (const Error& error) {
    before_meeting(known_meeting(commands, words), [&error] { throw error; });
    throw;
  }
}

/// Tells the other processes of a launch, which would wait for this one, that it takes no part in
/// their run. Waits for them only for a short time, because they may have come for other texts.
void decline(const Command& command) {
  constexpr std::chrono::seconds kTime{5};
  try {
    auto meeting = command.meeting();
    if (!meeting) return;
    meeting->meeting_time = kTime;
    Error error(
        ErrorCode::kUsage,
        fmt::format("a process was asked for its help or version, and does not {}", command.name));
    error.help("give every process the same command line");
    if (!follows()) error.leaderless();  // it reports nothing but the text
    before_meeting(meeting, [&error] { throw error; });
  } catch (const Error&) {
    // It has printed what it was asked for.
  }
}

}  // namespace

ExitCode run_app(const Commands& commands, const std::vector<std::string>& words) {
  const Command* const command = understood(commands, words);
  Session session(commands.global(), words);
  const bool version = command != nullptr && commands.global().version;
  const auto code = version              ? run_version(session)
                    : command != nullptr ? run_command(*command, commands, session)
                                         : run_without_command(commands, session);
  session.out().flush();
  if (command != nullptr && command->meeting && asks_for_text(commands.global())) decline(*command);
  return code;
}

}  // namespace shardtool::cli
