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

struct EngineOptions {
  Engine engine = Engine::kEmbedded;
  /// What detect_launch() found.
  std::optional<Launch> launch;
  /// Where those of tcp and nccl meet, and for how long they wait there for each other.
  MeetingPlace meeting;
  std::chrono::milliseconds meeting_time = kMeetingTime;
  /// The file of the plugin for mpi; empty: where it is installed.
  std::string mpi_plugin;
  NcclLibraries nccl;
};

/// What the engine would run on here, in words: libraries and their versions, which are opened and
/// not started. Throws kEngineMissing or, for tcp, kPeerLost with what is missing. Of the options
/// only the files of libraries count.
std::string found(const EngineOptions& options);

/// The processes of the launch, or this one alone where there is none. Every process of the launch
/// calls this. Throws kEngineMissing when the engine cannot be used here, kPeerLost when not all
/// come in time; kUsage when the launcher and the engine disagree about the processes, when the
/// processes have different options, or for embedded, whose ranks are no processes.
std::unique_ptr<Communicator> connect(const EngineOptions& options);

/// Runs `body` as each of `ranks` ranks: those of this process. What one throws ends the run for
/// all and is thrown; kUsage when the launcher started another number of processes.
void run_ranks(const EngineOptions& options, int ranks,
               const std::function<void(Communicator&)>& body);

}  // namespace shardtool::comm
