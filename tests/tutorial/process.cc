// One process of a launch, for tests: plays a part on an engine and writes the result to
// FOLDER/out.RANK. Exits with 0, or with the status of the error, which it writes instead.
//   tutorial_process ENGINE FOLDER demo|stream SEED

#include <cstdlib>
#include <fstream>
#include <string>

#include "lib/comm/engine.h"
#include "tests/tutorial/report_text.h"
#include "tests/tutorial/streams.h"

namespace shardtool::tutorial {
namespace {

std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// Streams inputs through every system.
std::string stream_all(comm::Communicator& comm) {
  Device<Field> device(comm);
  for (const auto& one : all_systems<Field>(kStreamSizes, comm.size())) {
    const auto inputs = inputs_for(one, 9);
    const auto outputs = stream(device, one, inputs);
    const auto expected = comm.rank() == 0 ? expected_outputs(one, inputs) : decltype(outputs){};
    if (outputs != expected) return one.name + " gives something else";
  }
  return comm.rank() == 0 ? "every output is right" : "ended";
}

std::string play(comm::Communicator& comm, const std::string& part, std::uint64_t seed) {
  if (part == "stream") return stream_all(comm);
  return text_of(run_mlp_demo(comm, demo_systems({6, 10, 5, 7, seed}, comm.size())));
}

int run(const std::string& engine, const std::string& folder, const std::string& part,
        std::uint64_t seed) {
  comm::EngineChoice options;
  options.engine = comm::engine_named(engine);
  options.launch = comm::detect_launch(variable);
  options.meeting.folder = folder;
  options.mpi_plugin = variable("SHARDTOOL_MPI_PLUGIN").value_or("");
  const int rank = options.launch ? options.launch->rank : 0;
  const int size = options.launch ? options.launch->size : 1;
  std::ofstream out(folder + "/out." + std::to_string(rank));
  try {
    comm::run_ranks(options, size,
                    [&](comm::Communicator& comm) { out << play(comm, part, seed) << std::flush; });
    return 0;
  } catch (const Error& error) {
    out << error.message() << std::flush;
    return error.exit_status();
  }
}

}  // namespace
}  // namespace shardtool::tutorial

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string part = argv[3];
  if (part != "demo" && part != "stream") return 2;
  return shardtool::tutorial::run(argv[1], argv[2], part, std::strtoull(argv[4], nullptr, 10));
}
