#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "lib/comm/launch.h"
#include "lib/comm/nccl/nccl_libraries.h"
#include "lib/comm/tcp/meeting_place.h"

namespace shardtool::comm {

/// Transport for messages between the ranks of a run.
///
///     embedded   threads of this process
///     tcp        processes of a launcher, over TCP
///     mpi        processes of mpirun, over its MPI, through a plugin
///     nccl       processes of a launcher with a GPU each, over NCCL; they meet over TCP
enum class Engine { kEmbedded, kTcp, kMpi, kNccl };

/// Throws kUsage when no engine has this name.
Engine engine_named(std::string_view name);
std::string_view name_of(Engine engine);

/// The engine of a run, and the way its processes find each other.
struct EngineChoice {
  std::optional<Engine> engine;  ///< nullopt: tcp for the processes of a launch, else embedded
  std::optional<Launch> launch;  ///< processes that a launcher started; see detect_launch()
  MeetingPlace meeting;          ///< meeting place of tcp and nccl
  std::chrono::milliseconds meeting_time = kMeetingTime;  ///< limit for waiting for each other
  std::string mpi_plugin;  ///< file of the mpi plugin; empty: where it is installed
  NcclLibraries nccl;

  Engine chosen() const { return engine.value_or(launch ? Engine::kTcp : Engine::kEmbedded); }
  /// Number of ranks: that of the launch, or `embedded` for the embedded engine.
  int ranks(int embedded) const {
    if (chosen() == Engine::kEmbedded) return embedded;
    return launch ? launch->size : 1;
  }
};

}  // namespace shardtool::comm
