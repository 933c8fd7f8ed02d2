#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/comm/communicator.h"
#include "lib/comm/launch.h"
#include "lib/comm/nccl/nccl_communicator.h"
#include "lib/comm/tcp/meeting_place.h"
#include "lib/comm/tcp/tcp_communicator.h"

namespace shardtool::comm {

/// Transport of the messages between the ranks of a run.
///
///     embedded   threads of this process
///     tcp        processes of a launcher, over TCP
///     mpi        processes of mpirun, over its MPI, through a plugin
///     nccl       processes of a launcher with a GPU each, over NCCL; they meet over TCP
enum class Engine { kEmbedded, kTcp, kMpi, kNccl };

/// Throws kUsage if no engine has this name.
Engine engine_named(std::string_view name);
std::string_view name_of(Engine engine);

struct EngineOptions {
  Engine engine = Engine::kEmbedded;
  /// Result of detect_launch().
  std::optional<Launch> launch;
  /// Meeting place of the processes of tcp and nccl, and their time limit for meeting.
  MeetingPlace meeting;
  std::chrono::milliseconds meeting_time = kMeetingTime;
  /// Plugin file for mpi; empty: the installed one.
  std::string mpi_plugin;
  NcclLibraries nccl;
};

/// Describes the engine on this machine: libraries and their versions, which are opened and not
/// started. Throws kEngineMissing or, for tcp, kPeerLost with the missing part. Uses only the
/// library files of the options.
std::string found(const EngineOptions& options);

/// Connects the processes of the launch; a single process without one. Every process of the launch
/// calls this. Throws kEngineMissing when the engine cannot be used here, kPeerLost when not all
/// come in time; kUsage when the launcher and the engine disagree about the processes, when the
/// processes have different options, or for embedded, whose ranks are not processes.
std::unique_ptr<Communicator> connect(const EngineOptions& options);

/// Runs `body` as each of `ranks` ranks; in this process those that belong to it. An exception ends
/// the run for all and is rethrown; kUsage when the launcher started another number of processes.
void run_ranks(const EngineOptions& options, int ranks,
               const std::function<void(Communicator&)>& body);

}  // namespace shardtool::comm
