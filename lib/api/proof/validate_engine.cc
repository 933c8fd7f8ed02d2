#include "lib/api/proof/validate_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

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

std::vector<std::unique_ptr<kernels::Accelerator>> only(std::unique_ptr<kernels::Accelerator> one) {
  std::vector<std::unique_ptr<kernels::Accelerator>> list;
  list.push_back(std::move(one));
  return list;
}

/// Opens the product library for the native run.
void open_library(ValidateEngine& engine) {
  kernels::ProductLibrary library;
  comm::all_do(*engine.comm, [&] {
    for (kernels::Accelerator* const one : engine.used) {
      library = one->product_library();
      if (!library.is_here()) return;
    }
  });
  engine.has_library = library.is_here();
  engine.libraries =
      engine.comm->all_gather(library.is_here() ? library.name : "none: " + library.missing);
}

/// Opens the GPUs that compute, if the caller has opened none, and gathers the names of all.
void open_accelerators(const ValidateOptions& options, ValidateEngine& engine) {
  if (engine.used.empty()) {
    engine.own = options.gpu_virtual ? open_all_gpus() : only(open_own_gpu(*engine.comm));
    for (const auto& one : engine.own) engine.used.push_back(one.get());
  }
  engine.backend = engine.used.front()->backend();
  std::vector<std::string> names;
  for (const kernels::Accelerator* const one : engine.used) names.push_back(one->name());
  engine.accelerators = engine.comm->all_gather(fmt::format("{}", fmt::join(names, ", ")));
  if (options.native) open_library(engine);
}

}  // namespace

std::string engine_name(const ValidateOptions& options) {
  return std::string(options.gpu_virtual ? kGpuVirtualName
                                         : comm::name_of(options.engine.chosen()));
}

ValidateEngine open_engine(const ValidateOptions& options) {
  ValidateEngine engine;
  engine.comm = connect(options);
  engine.used = options.accelerators;
  const bool needs_gpu = options.gpu_virtual || options.engine.chosen() == comm::Engine::kNccl;
  if (!needs_gpu && engine.used.empty()) return engine;
  comm::tell_interruption(*engine.comm, [&] { open_accelerators(options, engine); });
  return engine;
}

}  // namespace shardtool::api
