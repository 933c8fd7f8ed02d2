#include "lib/comm/launch.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::comm {
namespace {

struct Launcher {
  std::string_view name;
  const char* rank;
  const char* size;
  const char* required;            ///< must be set in addition to the two, or null
  std::array<const char*, 3> job;  ///< their values identify the launch
};

constexpr std::array kLaunchers{
    Launcher{"mpirun",
             "OMPI_COMM_WORLD_RANK",
             "OMPI_COMM_WORLD_SIZE",
             nullptr,
             {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID"}},
    Launcher{"torchrun",
             "RANK",
             "WORLD_SIZE",
             "TORCHELASTIC_RUN_ID",
             {"TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"}},
    Launcher{"srun",
             "SLURM_PROCID",
             "SLURM_STEP_NUM_TASKS",
             "SLURM_STEP_ID",
             {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}},
    Launcher{"mpirun", "PMI_RANK", "PMI_SIZE", nullptr, {"PMI_JOBID", "SLURM_JOB_ID", "PBS_JOBID"}},
};

/// Upper limit of processes, above any real launch: it bounds the memory for per-process state.
constexpr int kMostProcesses = 1 << 16;

int number(const char* name, const std::string& text) {
  int value = -1;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && at == end && value >= 0) return value;
  throw Error(ErrorCode::kUsage,
              fmt::format("the variable {} is '{}', expected a whole number", name, text));
}

}  // namespace

std::optional<Launch> detect_launch(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = environment(launcher.rank);
    const auto size = environment(launcher.size);
    if (!rank || !size || (launcher.required && !environment(launcher.required))) continue;
    Launch launch{
        std::string(launcher.name), number(launcher.rank, *rank), number(launcher.size, *size), {}};
    if (launch.size <= 1) continue;
    if (launch.size > kMostProcesses) {
      throw Error(ErrorCode::kLimit,
                  fmt::format("the variable {} is {}: a launch has at most {} processes",
                              launcher.size, *size, kMostProcesses))
          .help("unset the variables of the launcher, or start fewer processes");
    }
    if (launch.rank >= launch.size) {
      throw Error(ErrorCode::kUsage, fmt::format("the variable {} is {}, but {} is {}",
                                                 launcher.rank, *rank, launcher.size, *size));
    }
    for (const char* part : launcher.job) launch.job += environment(part).value_or("") + "/";
    const auto host = environment("MASTER_ADDR");
    const auto port = environment("MASTER_PORT");
    if (host && port) launch.master = fmt::format("{}:{}", *host, *port);
    launch.secret = environment(kSecretVariable).value_or("");
    return launch;
  }
  return std::nullopt;
}

void refuse_unknown_launch(const Environment& environment) {
  const auto size = environment("WORLD_SIZE");
  if (!environment("RANK") || !size || *size == "1") return;
  throw Error(ErrorCode::kUsage, "RANK and WORLD_SIZE are set, but not by a launcher that is known")
      .note("found", fmt::format("WORLD_SIZE={}", quote_for_message(*size)))
      .help("for processes of one launch, export TORCHELASTIC_RUN_ID=NAME, the same in all of them")
      .help("for one process, leave out --engine and --meeting");
}

void require_same_options(Communicator& comm, const Launch& launch) {
  require_same(
      comm, launch.options,
      Error(ErrorCode::kUsage, "the processes of this launch were started with different options")
          .help("give every process the same command line"));
}

}  // namespace shardtool::comm
