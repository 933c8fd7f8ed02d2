#include "lib/api/proof/validate_engine.h"

#include <fmt/format.h>

#include "kernels/device/device.h"
#include "lib/base/error.h"
#include "lib/comm/agreement.h"
#include "lib/comm/engine.h"
#include "lib/comm/machine.h"

namespace shardtool::api {
namespace {

/// All devices in one process, like the embedded engine, on one GPU.
constexpr std::string_view kGpuVirtual = "gpu-virtual";

std::unique_ptr<comm::Communicator> connect(const ValidateOptions& options,
                                            const std::string& name) {
  comm::EngineOptions engine;
  engine.engine = name == kGpuVirtual ? comm::Engine::kEmbedded : comm::engine_named(name);
  engine.launch = options.launch;
  engine.meeting = options.meeting;
  engine.mpi_plugin = options.mpi_plugin;
  engine.nccl = options.nccl;
  if (engine.engine != comm::Engine::kEmbedded) return comm::connect(engine);
  if (!options.launch) return std::make_unique<comm::SoloCommunicator>();
  throw Error(ErrorCode::kUsage, fmt::format("{} started {} processes, and the {} engine is one",
                                             options.launch->launcher, options.launch->size, name))
      .help("use --engine tcp, --engine mpi or --engine nccl, or start one process");
}

/// Opens the GPU of this process: rank n of a machine uses GPU n modulo the GPU count.
std::unique_ptr<kernels::Accelerator> open_gpu(int rank_on_machine) {
  const int count = kernels::device_state().count;
  return kernels::open_accelerator(count > 0 ? rank_on_machine % count : 0);
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
  if (!options.engine.empty()) return options.engine;
  return options.launch ? "tcp" : "embedded";
}

ValidateEngine open_engine(const ValidateOptions& options) {
  const std::string name = engine_name(options);
  ValidateEngine engine;
  engine.comm = connect(options, name);
  engine.accelerator = options.accelerator;
  const bool has_gpus = name == kGpuVirtual || name == comm::name_of(comm::Engine::kNccl);
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
