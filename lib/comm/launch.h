#pragma once

#include <functional>
#include <optional>
#include <string>

namespace shardtool::comm {

/// One process among several that a launcher started with the same command line.
struct Launch {
  std::string launcher;  ///< "mpirun", "srun", "torchrun"
  int rank = 0;
  int size = 1;
  std::string job;          ///< names this launch among those that may run at the same time
  std::string master = {};  ///< MASTER_ADDR:MASTER_PORT, or empty
};

/// Looks up a variable of the environment; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// What the environment says of a launcher that started more than one process, or nothing. Only
/// variables count that the launcher sets for the processes themselves, not those that a batch
/// script inherits:
///
///     mpirun    OMPI_COMM_WORLD_RANK, _SIZE (Open MPI), or PMI_RANK, PMI_SIZE (MPICH's Hydra)
///     srun      SLURM_PROCID, SLURM_STEP_NUM_TASKS
///     torchrun  RANK, WORLD_SIZE, with TORCHELASTIC_RUN_ID
///
/// Throws kUsage when a number is none, or the rank is not below the size.
std::optional<Launch> detect_launch(const Environment& environment);

}  // namespace shardtool::comm
