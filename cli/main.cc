#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/command_line.h"
#include "cli/launch.h"
#include "cli/print/error.h"
#include "cli/print/text.h"
#include "cli/signals.h"
#include "lib/store/local/failure.h"

namespace shardtool::cli {
namespace {

int exit_status(const Error& error) {
  constexpr int kSignalled = 128;
  const bool by_signal = error.code() == ErrorCode::kInterrupted && caught_signal() != 0;
  return by_signal ? kSignalled + caught_signal() : error.exit_status();
}

/// Returns the typed command, for the document of an error.
std::string command_name(const Commands& commands, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const Command* command = commands.tree().find(words[i]);
    if (command == nullptr) continue;
    const Command* longer =
        i + 1 < words.size() ? commands.tree().find(*command, words[i + 1]) : nullptr;
    return joined_name(longer == nullptr ? *command : *longer, '_');
  }
  return "shardtool";
}

/// Searches the words for --color, since parsing may be the step that failed.
Style typed_style(GlobalArgs global, const std::vector<std::string>& words) {
  if (!global.color) global.color = process_environment()("SHARDTOOL_COLOR");
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with("--color=")) global.color = words[i].substr(words[i].find('=') + 1);
    if (words[i] == "--color" && i + 1 < words.size()) global.color = words[i + 1];
  }
  return style_of(global, STDERR_FILENO);
}

/// Reports an error on standard error, or as a document on standard output. If that fails too, only
/// the exit status reports it.
int report(const Error& error, const Commands& commands, const std::vector<std::string>& words) {
  const auto& global = commands.global();
  // Searches the words as typed, since parsing may be the step that failed.
  const auto is_typed = [&words](std::string_view flag) {
    return std::find(words.begin(), words.end(), flag) != words.end();
  };
  // The exit codes of `terraform plan -detailed-exitcode`: 0 and 2 are answers, every error is 1.
  const int status =
      is_typed("--detailed-exitcode") ? static_cast<int>(ExitCode::kNegative) : exit_status(error);
  bool json = is_typed("--json");
  if (json) {
    Output out(stdout);
    auto document = open_document(out, command_name(commands, words), "error");
    write_error(document, error, status);
    document.end_object();
    try {
      out.flush();
    } catch (const Error&) {
      json = false;
    }
  }
  if (!json) {
    const Style style = typed_style(global, words);
    write_to_stderr(error_text(error, style, global.verbose), style.enabled());
  }
  return status;
}

/// Returns the command line of a run that can go on, which has --resume or --share.
std::string typed_command(const std::vector<std::string>& words) {
  const bool resumes = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "--resume" || word.starts_with("--share");
  });
  return resumes ? command_text(words) : command_text(words) + " --resume";
}

/// Adds how to go on with an interrupted run, and how to give it up.
void add_ways_on(Error& error, const Commands& commands, const std::vector<std::string>& words) {
  error.help("go on with: " + typed_command(words));
  for (const TypedArgument& typed : parse_words(words, commands.tree()).arguments) {
    if (typed.argument->name != "--output") continue;
    error.help("delete what is kept: " + command_text({"resume", "--discard", typed.text}));
  }
}

/// Names the environment variable that gave the value of the flag with which the message begins.
void add_source(Error& error, const Commands& commands, const std::vector<std::string>& words) {
  if (error.code() != ErrorCode::kUsage || !error.message().starts_with("--")) return;
  const std::string flag = error.message().substr(0, error.message().find(' '));
  try {
    const CommandLine line = parse_words(words, commands.tree());
    const std::string variable = source_of(flag, line, commands.tree());
    if (!variable.empty()) error.note("set by", variable);
  } catch (const Error&) {
    // The words are no command line, which the error says.
  }
}

int run(const std::vector<std::string>& words) {
  const Commands commands;
  try {
    return static_cast<int>(run_app(commands, words));
  } catch (Error& error) {
    if (error.is_leaderless()) speak();
    add_source(error, commands, words);
    if (error.is_resumable()) add_ways_on(error, commands, words);
    return report(error, commands, words);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(store::read_failure("use the path", error.path1().string(), error.code().value()),
                  commands, words);
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorCode::kLimit, "the system refused memory")
                      .help("lower --max-memory, or raise the limit of this process"),
                  commands, words);
  } catch (const std::exception& error) {
    return report(Error(ErrorCode::kInternal, error.what())
                      .note("version", SHARDTOOL_VERSION)
                      .help("please report this with the command line that led to it"),
                  commands, words);
  }
}

/// Prints the error without allocating memory and returns the exit status.
int refused_memory() {
  constexpr std::string_view kMessage = "error[E0501]: the system refused memory\n";
  static_cast<void>(!::write(STDERR_FILENO, kMessage.data(), kMessage.size()));
  return static_cast<int>(ExitCode::kResource);
}

/// Runs before all other initialisers. Some of them (the CUDA runtime) do not check their
/// allocations, and without libstdc++'s own allocation no exception can be thrown after memory runs
/// out.
[[gnu::constructor(101)]] void need_memory_to_start() {
  constexpr size_t kBytes = 1 << 20;
  void* const room =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) ::_exit(refused_memory());
  ::munmap(room, kBytes);
}

}  // namespace
}  // namespace shardtool::cli

int main(int argc, char** argv) {
  shardtool::cli::prepare_process();
  try {
    shardtool::cli::silence_followers();
    return shardtool::cli::run({argv + std::min(argc, 1), argv + argc});
  } catch (const std::bad_alloc&) {
    // not even enough memory for the list of commands
    return shardtool::cli::refused_memory();
  }
}
