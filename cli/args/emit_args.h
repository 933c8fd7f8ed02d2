#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/session.h"
#include "lib/api/planning/emit/emit_format.h"
#include "lib/base/error.h"

namespace shardtool::cli {

inline Argument emit_argument(std::optional<std::string>& format) {
  return {.name = "--emit",
          .value = "PROGRAM",
          .help =
              "print the layout, or the reshard, as data that this program takes, instead of "
              "the report",
          .target = &format,
          .choices = {"dtensor", "nccl-m2n", "mooncake"},
          .advanced = true};
}

/// Returns what --emit names. Throws kUsage beside a report as JSON or in another format.
inline std::optional<api::EmitFormat> to_emit_format(const std::optional<std::string>& typed,
                                                     const std::optional<std::string>& format,
                                                     const Session& session) {
  if (!typed) return std::nullopt;
  if (session.json() || format) {
    throw Error(ErrorCode::kUsage, "--emit cannot be combined with --json, --html or --format")
        .help("run the command twice, once with --emit");
  }
  return api::emit_format_named(*typed);
}

}  // namespace shardtool::cli
