#include "cli/launch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "shardtool/base/error.h"

namespace shardtool::cli {
namespace {

/// Where a follower's standard error went before it was silenced; -1: it was not.
int own_stderr = -1;

}  // namespace

std::optional<comm::Launch> this_launch() {
  return comm::detect_launch([](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

bool follows() {
  const auto launch = this_launch();
  return launch && launch->rank != 0;
}

void silence_followers() {
  try {
    if (!follows()) return;
  } catch (const Error&) {
    return;  // the command that needs the launch says what is wrong
  }
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  own_stderr = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  ::close(nowhere);
}

void speak_for_lost_leader() {
  if (own_stderr >= 0) ::dup2(own_stderr, STDERR_FILENO);
}

}  // namespace shardtool::cli
