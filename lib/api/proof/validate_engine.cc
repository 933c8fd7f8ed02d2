#include "lib/api/proof/validate_engine.h"

#include "lib/api/proof/process_gpu.h"
#include "lib/comm/agreement.h"
#include "lib/comm/engine.h"

namespace shardtool::api {
namespace {

std::unique_ptr<comm::Communicator> connect(const ValidateOptions& options) {
  const comm::EngineChoice& choice = options.engine;
  const bool is_embedded = options.gpu_virtual || choice.chosen() == comm::Engine::kEmbedded;
  if (!is_embedded) return comm::connect(choice);
  require_one_process(choice, engine_name(options));
  return std::make_unique<comm::SoloCommunicator>();
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
  return std::string(options.gpu_virtual ? kGpuVirtualName
                                         : comm::name_of(options.engine.chosen()));
}

bool computes_on_gpus(const ValidateOptions& options) {
  return options.gpu_virtual || options.engine.chosen() == comm::Engine::kNccl;
}

ValidateEngine open_engine(const ValidateOptions& options) {
  ValidateEngine engine;
  engine.comm = connect(options);
  engine.accelerator = options.accelerator;
  if (!computes_on_gpus(options) && engine.accelerator == nullptr) return engine;
  if (engine.accelerator == nullptr) {
    engine.own = open_own_gpu(*engine.comm);
    engine.accelerator = engine.own.get();
  }
  engine.backend = engine.accelerator->backend();
  engine.accelerators = engine.comm->all_gather(engine.accelerator->name());
  if (options.native) open_library(engine);
  return engine;
}

}  // namespace shardtool::api
