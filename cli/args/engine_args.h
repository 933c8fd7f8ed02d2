#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "lib/base/checked.h"
#include "lib/comm/tcp/meeting_place.h"

namespace shardtool::cli {

/// That one process plays.
inline constexpr i64 kMostRanks = 64;

/// Who plays the devices, as typed.
struct EngineArgs {
  std::optional<std::string> engine = {};
  std::optional<std::string> meeting = {};
  std::optional<std::string> mpi_plugin = {};

  /// Whether the engine or the place to meet was typed.
  bool given() const { return engine || meeting; }
};

std::vector<Argument> engine_arguments(EngineArgs& args);

/// Replaces the defaults of any options that have an engine where something was typed.
template <class Options>
void set_engine(const EngineArgs& args, Options& options) {
  if (args.engine) options.engine = *args.engine;
  if (args.meeting) options.meeting = comm::parse_meeting(*args.meeting);
  if (args.mpi_plugin) options.mpi_plugin = *args.mpi_plugin;
}

}  // namespace shardtool::cli
