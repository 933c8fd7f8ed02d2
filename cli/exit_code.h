#pragma once

#include <array>
#include <string_view>

namespace shardtool::cli {

/// Exit status of the process. Stable: a number never changes its meaning, new ones may be added.
/// Scripts must treat an unknown number as a failure.
enum class ExitCode : int {
  kSuccess = 0,
  kNegative = 1,
  kUsage = 2,
  kMapping = 3,
  kInput = 4,
  kOutput = 5,
  kResource = 6,
  kInternal = 70,
  kHungUp = 129,
  kInterrupted = 130,
  kTerminated = 143,
};

struct ExitCodeInfo {
  ExitCode code;
  std::string_view meaning;
};

/// Listed by --help and in every man page.
inline constexpr std::array<ExitCodeInfo, 11> kExitCodes{{
    {ExitCode::kSuccess, "success"},
    {ExitCode::kNegative, "negative result: the checkpoints differ, or something needs attention"},
    {ExitCode::kUsage, "usage error: unknown command or flag, bad value"},
    {ExitCode::kMapping, "the mapping is invalid or does not fit this checkpoint"},
    {ExitCode::kInput, "input unreadable, malformed, unsupported or changed"},
    {ExitCode::kOutput, "output exists or cannot be written"},
    {ExitCode::kResource, "a resource is not available"},
    {ExitCode::kInternal, "internal error, a bug in shardtool"},
    {ExitCode::kHungUp, "ended by SIGHUP: its terminal closed"},
    {ExitCode::kInterrupted, "interrupted by SIGINT"},
    {ExitCode::kTerminated, "terminated by SIGTERM"},
}};

}  // namespace shardtool::cli
