#include "cli/args/engine_args.h"

namespace shardtool::cli {

std::vector<Argument> engine_arguments(EngineArgs& args) {
  return {{.name = "--engine",
           .value = "NAME",
           .help = "who plays the devices; as mpirun, srun or torchrun say when absent",
           .target = &args.engine,
           .choices = {"embedded", "tcp", "mpi", "nccl"},
           .advanced = true},
          {.name = "--meeting",
           .value = "PLACE",
           .help = "where processes of a launch meet: a folder that all see, tcp://HOST:PORT, or "
                   "env:// (MASTER_ADDR and MASTER_PORT); at an address with the secret in the "
                   "variable SHARDTOOL_SECRET; the current folder when absent",
           .target = &args.meeting,
           .advanced = true,
           .of_process = true},
          {.name = "--mpi-plugin",
           .value = "FILE",
           .help = "what speaks MPI, instead of the one beside the program",
           .target = &args.mpi_plugin,
           .environment = "SHARDTOOL_MPI_PLUGIN",
           .advanced = true,
           .of_process = true}};
}

}  // namespace shardtool::cli
