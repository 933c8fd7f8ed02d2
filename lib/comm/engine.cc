#include "lib/comm/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/comm/agreement.h"
#include "lib/comm/embedded.h"
#include "lib/comm/mpi/mpi_communicator.h"
#include "lib/comm/nccl/nccl_communicator.h"
#include "lib/comm/tcp/socket.h"
#include "lib/comm/tcp/tcp_communicator.h"

namespace shardtool::comm {
namespace {

constexpr std::array<std::string_view, 4> kNames{"embedded", "tcp", "mpi", "nccl"};

std::unique_ptr<Communicator> meet_over_tcp(const EngineChoice& choice) {
  if (!choice.launch) return std::make_unique<SoloCommunicator>();
  const Launch& launch = *choice.launch;
  return meet(meeting_point(choice.meeting, launch), launch.rank, launch.size, choice.meeting_time);
}

std::string found_tcp() {
  std::vector<std::string> hosts;
  for (const Address& address : listen().addresses) hosts.push_back(address.host);
  return fmt::format("reachable as {}", fmt::join(hosts, ", "));
}

std::unique_ptr<Communicator> meet_over_mpi(const EngineChoice& choice) {
  auto comm = open_mpi(mpi_plugin_places(choice.mpi_plugin));
  const int started = choice.launch ? choice.launch->size : 1;
  if (comm->size() != started) {
    throw Error(ErrorCode::kUsage,
                fmt::format("MPI knows of {} processes, but {} started {}", comm->size(),
                            choice.launch ? choice.launch->launcher : "the command line", started))
        .help("start the processes with the mpirun of the MPI that the plugin was built with");
  }
  return comm;
}

/// Connects the processes for control messages.
std::unique_ptr<Communicator> met(const EngineChoice& choice) {
  return choice.chosen() == Engine::kMpi ? meet_over_mpi(choice) : meet_over_tcp(choice);
}

}  // namespace

Engine engine_named(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Engine>(i);
  }
  throw Error(ErrorCode::kUsage, fmt::format("no engine is named '{}'", name))
      .note("expected", fmt::format("{}", fmt::join(kNames, ", ")));
}

std::string_view name_of(Engine engine) {
  return kNames[static_cast<size_t>(engine)];
}

std::string found(const EngineChoice& choice) {
  switch (choice.chosen()) {
    case Engine::kEmbedded:
      return "threads of this process";
    case Engine::kTcp:
      return found_tcp();
    case Engine::kMpi:
      return found_mpi(mpi_plugin_places(choice.mpi_plugin));
    case Engine::kNccl:
      return found_nccl(choice.nccl);
  }
  throw Error(ErrorCode::kInternal, "an engine without a name");
}

std::unique_ptr<Communicator> connect(const EngineChoice& choice) {
  if (choice.chosen() == Engine::kEmbedded) {
    throw Error(ErrorCode::kUsage, "the embedded engine has no processes to connect");
  }
  auto comm = met(choice);
  tell_interruption(*comm, [&] {
    all_do(*comm, [] {});  // throws what another process threw in before_meeting
    if (choice.launch) require_same_options(*comm, *choice.launch);
  });
  if (choice.chosen() != Engine::kNccl) return comm;
  return open_nccl(std::move(comm), choice.nccl);
}

void before_meeting(const EngineChoice& choice, const std::function<void()>& work) {
  std::optional<Error> failure;
  try {
    return work();
  } catch (const Error& error) {
    if (!choice.launch || choice.chosen() == Engine::kEmbedded) throw;
    failure = error;
  }
  std::unique_ptr<Communicator> comm;
  try {
    comm = met(choice);
  } catch (const Error& lost) {
    // Its own error says more than that the others could not be told.
    if (lost.is_leaderless()) failure->leaderless();
    throw *std::move(failure);
  }
  tell_interruption(*comm, [&] { all_do(*comm, [&] { throw *failure; }); });
}

void run_ranks(const EngineChoice& choice, int ranks,
               const std::function<void(Communicator&)>& body) {
  if (choice.chosen() == Engine::kEmbedded) return run_embedded(ranks, body);
  const auto comm = connect(choice);
  // Every process computes the same result, so no message is needed.
  if (comm->size() != ranks) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} processes were started, expected {}", comm->size(), ranks))
        .help(fmt::format("start {}, for example with mpirun -n {}", ranks, ranks));
  }
  run_or_abort(*comm, [&] { body(*comm); });
}

}  // namespace shardtool::comm
