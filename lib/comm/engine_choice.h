#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "lib/comm/launch.h"
#include "lib/comm/nccl/nccl_libraries.h"
#include "lib/comm/tcp/meeting_place.h"

namespace shardtool::comm {

/// What carries the messages between the ranks of a run.
///
///     embedded   threads of this process
///     tcp        processes of a launcher, over TCP
///     mpi        processes of mpirun, over its MPI, which a plugin speaks
///     nccl       processes of a launcher with a GPU each, over NCCL; they meet over TCP
enum class Engine { kEmbedded, kTcp, kMpi, kNccl };

/// Throws kUsage when no engine has this name.
Engine engine_named(std::string_view name);
std::string_view name_of(Engine engine);

/// The engine that carries the messages of a run, and how its processes find each other.
struct EngineChoice {
  std::optional<Engine> engine;  ///< absent: tcp for the processes of a launch, else embedded
  std::optional<Launch> launch;  ///< the processes that a launcher started: see detect_launch()
  MeetingPlace meeting;          ///< where the processes of tcp and nccl meet
  std::chrono::milliseconds meeting_time = kMeetingTime;  ///< for which they wait for each other
  std::string mpi_plugin;  ///< the file of the plugin for mpi; empty: where it is installed
  NcclLibraries nccl;

  Engine chosen() const { return engine.value_or(launch ? Engine::kTcp : Engine::kEmbedded); }
  /// Those of the launch, or of the embedded engine this many.
  int ranks(int embedded) const {
    if (chosen() == Engine::kEmbedded) return embedded;
    return launch ? launch->size : 1;
  }
};

}  // namespace shardtool::comm
