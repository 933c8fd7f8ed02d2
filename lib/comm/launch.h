#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lib/comm/facts.h"

namespace shardtool::comm {

/// Variable that carries the secret of a launch. Every user of the machine could see an argument.
inline constexpr const char* kSecretVariable = "SHARDTOOL_SECRET";

/// One process among several that a launcher started with the same command line.
struct Launch {
  std::string launcher;  ///< "mpirun", "srun", "torchrun"
  int rank = 0;
  int size = 1;
  std::string job;          ///< distinguishes concurrent launches
  std::string master = {};  ///< MASTER_ADDR:MASTER_PORT, or empty
  std::string secret = {};  ///< SHARDTOOL_SECRET, or empty
  Facts options = {};       ///< command line of this process; the same in all processes
};

/// Looks up an environment variable; nullopt if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// Detects a launcher that started more than one process; otherwise nullopt. Uses only variables
/// that the launcher sets for the processes themselves, not those that a batch script inherits:
///
///     mpirun    OMPI_COMM_WORLD_RANK, _SIZE (Open MPI), or PMI_RANK, PMI_SIZE (MPICH's Hydra)
///     srun      SLURM_PROCID, SLURM_STEP_NUM_TASKS
///     torchrun  RANK, WORLD_SIZE, with TORCHELASTIC_RUN_ID
///
/// Throws kUsage for an invalid number or a rank that is not below the size, kLimit for more than
/// 65,536 processes.
std::optional<Launch> detect_launch(const Environment& environment);

/// Throws kUsage if RANK and WORLD_SIZE name several processes although detect_launch finds none. A
/// run that is told how its processes meet would be alone.
void refuse_unknown_launch(const Environment& environment);

/// Throws kUsage in every process when not all were started with the same options. Every process of
/// the launch calls this.
void require_same_options(Communicator& comm, const Launch& launch);

}  // namespace shardtool::comm
