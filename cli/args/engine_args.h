#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "lib/base/checked.h"
#include "lib/comm/tcp/meeting_place.h"

namespace shardtool::cli {

/// Maximum number of ranks that one process runs.
inline constexpr i64 kMostRanks = 64;

/// Flags that choose the engine, as typed.
struct EngineArgs {
  std::optional<std::string> engine = {};
  std::optional<std::string> meeting = {};
  std::optional<std::string> mpi_plugin = {};

  /// True if the engine or the meeting point was typed.
  bool given() const { return engine || meeting; }
};

std::vector<Argument> engine_arguments(EngineArgs& args);

/// Overrides the engine fields of any options struct with the typed values.
template <class Options>
void set_engine(const EngineArgs& args, Options& options) {
  if (args.engine) options.engine = *args.engine;
  if (args.meeting) options.meeting = comm::parse_meeting(*args.meeting);
  if (args.mpi_plugin) options.mpi_plugin = *args.mpi_plugin;
}

}  // namespace shardtool::cli
