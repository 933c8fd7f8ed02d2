#include "cli/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "lib/base/error.h"

namespace shardtool::cli {
namespace {

/// Duplicates of a follower's original outputs; -1 if it was not silenced.
int own_stdout = -1;
int own_stderr = -1;

/// The typed command line, which must be the same in every process of a launch.
comm::Facts remembered_options;

/// Returns nullopt for an argument that was not typed and has no default.
std::optional<std::string> typed(const Argument& argument) {
  return std::visit(
      [](const auto* target) -> std::optional<std::string> {
        using Value = std::remove_cvref_t<decltype(*target)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return *target ? std::optional(std::string()) : std::nullopt;
        } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
          return target->empty() ? std::nullopt
                                 : std::optional(fmt::format("{}", fmt::join(*target, " ")));
        } else {
          return *target;
        }
      },
      argument.target);
}

}  // namespace

comm::Environment process_variables() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

std::optional<comm::Launch> this_launch() {
  auto launch = comm::detect_launch(process_variables());
  if (launch) launch->options = remembered_options;
  return launch;
}

void remember_options(const Command& command) {
  remembered_options = {{"shardtool", SHARDTOOL_VERSION}, {"command", command.name}};
  for (const Argument& argument : command.arguments) {
    if (argument.of_process) continue;
    if (auto value = typed(argument))
      remembered_options.emplace_back(argument.name, *std::move(value));
  }
}

bool follows() {
  const auto launch = this_launch();
  return launch && launch->rank != 0;
}

void silence_followers() {
  try {
    if (!follows()) return;
  } catch (const Error&) {
    return;  // the command that needs the launch reports the error
  }
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  own_stdout = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  own_stderr = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  ::close(nowhere);
}

void speak() {
  if (own_stdout >= 0) ::dup2(own_stdout, STDOUT_FILENO);
  if (own_stderr >= 0) ::dup2(own_stderr, STDERR_FILENO);
}

}  // namespace shardtool::cli
