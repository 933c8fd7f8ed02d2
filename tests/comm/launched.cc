#include "tests/comm/launched.h"

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/temp_folder.h"

namespace shardtool::comm {
namespace {

// Kills a process that hangs, so that the test fails by its time.
constexpr const char* kTimed = "timeout -k 1 60 ";
/// Empty in a build without MPI.
constexpr const char* kPlugin = SHARDTOOL_TEST_MPI_PLUGIN;

int run(const std::string& script) {
  const int status = std::system(script.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string by_environment(int size, const std::string& command) {
  const std::string n = std::to_string(size);
  std::string script = "pids=; ";
  for (int rank = 0; rank < size; ++rank) {
    script += "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + " OMPI_COMM_WORLD_SIZE=" + n +
              " PMIX_NAMESPACE=test " + kTimed + command + " & pids=\"$pids $!\"; ";
  }
  return script + "most=0; for pid in $pids; do wait $pid; s=$?; " +
         "[ $s -gt $most ] && most=$s; done; exit $most";
}

std::string by_mpirun(int size, const std::string& command) {
  // Open MPI leaks memory at exit, which LeakSanitizer would report.
  return std::string("export SHARDTOOL_MPI_PLUGIN='") + kPlugin +
         "' OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " +
         "ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\"; " + kTimed + "mpirun --oversubscribe -n " +
         std::to_string(size) + " " + command + " 2>/dev/null";
}

}  // namespace

Launched launch(const std::string& engine, int size, const std::string& part, int seed) {
  const test::TempFolder folder;
  const std::string command = std::string(SHARDTOOL_COMM_PROCESS) + " " + engine + " '" +
                              folder.path() + "' " + part + " " + std::to_string(seed);
  const auto start = std::chrono::steady_clock::now();
  Launched launched;
  launched.status = run(engine == "mpi" ? by_mpirun(size, command) : by_environment(size, command));
  launched.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (int rank = 0; rank < size; ++rank) {
    launched.said.push_back(read(folder / ("out." + std::to_string(rank))));
  }
  return launched;
}

std::string reason_to_skip(const std::string& engine) {
  if (engine != "mpi") return {};
  if (run("command -v mpirun >/dev/null") != 0) return "no mpirun here";
  if (!std::filesystem::exists(kPlugin)) return "no MPI when this was built";
  return {};
}

}  // namespace shardtool::comm
