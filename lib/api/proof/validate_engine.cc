#include "lib/api/proof/validate_engine.h"

#include <fmt/format.h>

#include "kernels/device/device.h"
#include "lib/base/error.h"
#include "lib/comm/agreement.h"
#include "lib/comm/engine.h"
#include "lib/comm/machine.h"

namespace shardtool::api {
namespace {

std::unique_ptr<comm::Communicator> connect(const ValidateOptions& options) {
  const comm::EngineChoice& choice = options.engine;
  const bool is_embedded = options.gpu_virtual || choice.chosen() == comm::Engine::kEmbedded;
  if (!is_embedded) return comm::connect(choice);
  if (!choice.launch) return std::make_unique<comm::SoloCommunicator>();
  throw Error(ErrorCode::kUsage,
              fmt::format("{} started {} processes, and the {} engine is one",
                          choice.launch->launcher, choice.launch->size, engine_name(options)))
      .help("use --engine tcp, --engine mpi or --engine nccl, or start one process");
}

/// Opens the GPU of this process.
std::unique_ptr<kernels::Accelerator> open_gpu(int rank_on_machine) {
  const int count = kernels::device_state().count;
  return kernels::open_accelerator(count > 0 ? comm::gpu_of(rank_on_machine, count) : 0);
}

/// Opens the product library for the native run.
void open_library(ValidateEngine& engine) {
  kernels::ProductLibrary library;
  comm::all_do(*engine.comm, [&] { library = engine.accelerator->product_library(); });
  engine.has_library = library.is_here();
  engine.libraries =
      engine.comm->all_gather(library.is_here() ? library.name : "none: " + library.missing);
}

}  // namespace

std::string engine_name(const ValidateOptions& options) {
  return options.gpu_virtual ? "gpu-virtual" : std::string(comm::name_of(options.engine.chosen()));
}

ValidateEngine open_engine(const ValidateOptions& options) {
  ValidateEngine engine;
  engine.comm = connect(options);
  engine.accelerator = options.accelerator;
  const bool has_gpus = options.gpu_virtual || options.engine.chosen() == comm::Engine::kNccl;
  if (!has_gpus && engine.accelerator == nullptr) return engine;
  if (engine.accelerator == nullptr) {
    const int rank = comm::rank_on_machine(*engine.comm);
    comm::all_do(*engine.comm, [&] { engine.own = open_gpu(rank); });
    engine.accelerator = engine.own.get();
  }
  engine.backend = engine.accelerator->backend();
  engine.accelerators = engine.comm->all_gather(engine.accelerator->name());
  if (options.native) open_library(engine);
  return engine;
}

}  // namespace shardtool::api
