// One process of a launch, for tests: connects on an engine, plays a part, and writes the result to
// FOLDER/out.RANK. Exits with 0, or with the status of the error.
//   comm_process ENGINE FOLDER PART [SEED]

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "lib/base/error.h"
#include "lib/comm/agreement.h"
#include "lib/comm/engine.h"
#include "tests/comm/laws.h"

namespace shardtool::comm {
namespace {

using std::chrono::seconds;

std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// Stops all threads of this process for some seconds.
void freeze(std::uint64_t time) {
  const pid_t own = ::getpid();
  if (::fork() == 0) {
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(file);
    ::sleep(static_cast<unsigned>(time));
    ::kill(own, SIGCONT);
    ::_exit(0);
  }
  ::raise(SIGSTOP);
}

/// Actions of the last rank while the others wait for each other. The number is the seed.
const std::map<std::string, std::function<void(Communicator&, std::uint64_t)>> kParts{
    {"exits", [](Communicator&, std::uint64_t) { std::_Exit(3); }},
    {"throws", [](Communicator&, std::uint64_t) { throw Error(ErrorCode::kConfig, "no heads"); }},
    {"freezes", [](Communicator&, std::uint64_t time) { freeze(time); }},
    {"stalls", [](Communicator&, std::uint64_t time) { freeze(time); }},
    {"computes",
     [](Communicator& comm, std::uint64_t time) {
       std::this_thread::sleep_for(seconds(time));
       comm.all_gather("x");
     }},
    {"aborts",
     [](Communicator& comm, std::uint64_t) {
       Error error(ErrorCode::kNoSpace, "enough");
       comm.abort(error);
       throw error;
     }},
    {"ends", [](Communicator&, std::uint64_t) {}},
};

std::string play(Communicator& comm, const std::string& part, std::uint64_t seed) {
  if (part == "laws") return keep_laws(comm, seed);
  comm.set_deadline(seconds(60), std::chrono::milliseconds(part == "computes" ? 2000 : 500));
  comm.barrier();
  if (comm.rank() == comm.size() - 1) {
    kParts.at(part)(comm, seed);
  } else if (part == "stalls") {
    comm.receive(comm.rank() + 1);
  } else {
    comm.all_gather("x");
  }
  return "went on";
}

int run(const std::string& engine, const std::string& folder, const std::string& part,
        std::uint64_t seed) {
  EngineChoice options;
  options.engine = engine_named(engine);
  options.launch = detect_launch(variable);
  options.meeting.folder = folder;
  options.mpi_plugin = variable("SHARDTOOL_MPI_PLUGIN").value_or("");
  const int rank = options.launch ? options.launch->rank : 0;
  const int size = options.launch ? options.launch->size : 1;
  std::ofstream out(folder + "/out." + std::to_string(rank));
  try {
    run_ranks(options, size,
              [&](Communicator& comm) { out << play(comm, part, seed) << std::flush; });
    return 0;
  } catch (const Error& error) {
    out << error.message();
    for (const auto& [label, text] : error.notes()) {
      if (label == "process") out << " (process " << text << ")";
    }
    out << std::flush;
    return error.exit_status();
  } catch (const std::exception& error) {
    out << error.what() << std::flush;
    return 1;
  }
}

}  // namespace
}  // namespace shardtool::comm

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  return shardtool::comm::run(argv[1], argv[2], argv[3],
                              argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 0);
}
