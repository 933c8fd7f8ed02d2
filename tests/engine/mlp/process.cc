// One process of a launch, for tests: it runs the demo on an engine and writes its report into
// FOLDER/out.RANK. Exits with 0, or with the status of the error, which it writes instead.
//   mlp_process ENGINE FOLDER demo SEED

#include <cstdlib>
#include <fstream>
#include <string>

#include "shardtool/comm/engine.h"
#include "tests/engine/mlp/report_text.h"

namespace shardtool::engine::mlp {
namespace {

std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

int run(const std::string& engine, const std::string& folder, std::uint64_t seed) {
  comm::EngineOptions options;
  options.engine = comm::engine_named(engine);
  options.launch = comm::detect_launch(variable);
  options.meeting_folder = folder;
  options.mpi_plugin = variable("SHARDTOOL_MPI_PLUGIN").value_or("");
  const int rank = options.launch ? options.launch->rank : 0;
  const int size = options.launch ? options.launch->size : 1;
  std::ofstream out(folder + "/out." + std::to_string(rank));
  try {
    comm::run_ranks(options, size, [&](comm::Communicator& comm) {
      out << text_of(run_mlp_demo(comm, {6, 10, 5, 7, seed})) << std::flush;
    });
    return 0;
  } catch (const Error& error) {
    out << error.message() << std::flush;
    return error.exit_status();
  }
}

}  // namespace
}  // namespace shardtool::engine::mlp

int main(int argc, char** argv) {
  if (argc != 5 || std::string(argv[3]) != "demo") return 2;
  return shardtool::engine::mlp::run(argv[1], argv[2], std::strtoull(argv[4], nullptr, 10));
}
