#include "cli/args/engine_args.h"

#include "cli/launch.h"
#include "lib/comm/engine.h"

namespace shardtool::cli {

std::vector<Argument> engine_arguments(EngineArgs& args) {
  return {{.name = "--engine",
           .value = "NAME",
           .help = "what carries the messages between ranks; default embedded (threads of this "
                   "process), or as the launcher says: mpirun, srun or torchrun",
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
           .help = "the library that speaks MPI, instead of the one beside the program",
           .target = &args.mpi_plugin,
           .environment = "SHARDTOOL_MPI_PLUGIN",
           .advanced = true,
           .of_process = true},
          {.name = "--nccl",
           .value = "FILE",
           .help = "libnccl.so of the nccl engine, instead of the one that the loader finds",
           .target = &args.nccl,
           .environment = "SHARDTOOL_NCCL",
           .advanced = true,
           .of_process = true},
          {.name = "--cuda-runtime",
           .value = "FILE",
           .help = "libcudart.so of the nccl engine, instead of the one that the loader finds",
           .target = &args.cuda_runtime,
           .environment = "SHARDTOOL_CUDA_RUNTIME",
           .advanced = true,
           .of_process = true}};
}

comm::EngineChoice to_engine(const EngineArgs& args) {
  comm::EngineChoice choice;
  if (args.engine && !args.is_gpu_virtual()) choice.engine = comm::engine_named(*args.engine);
  if (args.meeting) choice.meeting = comm::parse_meeting(*args.meeting);
  if (args.mpi_plugin) choice.mpi_plugin = *args.mpi_plugin;
  if (args.nccl) choice.nccl.nccl = *args.nccl;
  if (args.cuda_runtime) choice.nccl.cuda_runtime = *args.cuda_runtime;
  choice.launch = this_launch();
  const bool has_processes =
      args.meeting || choice.engine.value_or(comm::Engine::kEmbedded) != comm::Engine::kEmbedded;
  if (has_processes && !choice.launch) comm::refuse_unknown_launch(process_variables());
  return choice;
}

void before_meeting(const std::optional<comm::EngineChoice>& meeting,
                    const std::function<void()>& work) {
  meeting ? comm::before_meeting(*meeting, work) : work();
}

}  // namespace shardtool::cli
