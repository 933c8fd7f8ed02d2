#include "lib/api/demo.h"

#include <fmt/format.h>

#include "kernels/decode/decode.h"
#include "lib/api/proof/process_gpu.h"
#include "lib/base/error.h"
#include "lib/comm/engine.h"
#include "lib/format/checkpoint.h"
#include "lib/store/reader.h"
#include "lib/tutorial/shardings/system.h"

namespace shardtool::api {
namespace {

/// Sizes that do not divide by four, so that parts differ in size.
constexpr tutorial::DemoSizes kSizes{12, 22, 9, 10, 0};
/// Gives each device at least one feature.
constexpr i64 kPerDevice = 2;

tutorial::StoredArray read_array(const format::Checkpoint& checkpoint,
                                 const format::StoredTensor& tensor) {
  const size_t rank = tensor.shape.size();
  if (!kernels::is_computable(tensor.dtype) || rank < 1 || rank > 2 || tensor.part) {
    throw Error(ErrorCode::kUnsupported, "the demo computes with matrices and biases of floats")
        .tensor(tensor.name)
        .note("found", fmt::format("{} of {} axes", to_string(tensor.dtype), rank));
  }
  tutorial::StoredArray array{
      tensor.dtype, rank == 1 ? 1 : tensor.shape.front(), tensor.shape.back(), {}};
  array.bytes.resize(static_cast<size_t>(tensor.bytes));
  const auto& file = checkpoint.files[static_cast<size_t>(tensor.file)];
  store::read_exact(store::open_reader(file.path), array.bytes, tensor.offset);
  return array;
}

tutorial::StoredParameters read_parameters(const std::string& location) {
  const format::Checkpoint checkpoint = format::open_checkpoint(location);
  if (checkpoint.manifest) {
    throw Error(ErrorCode::kUnsupported, "the demo shards a model itself")
        .at({location, 0, 0, ""})
        .help("give the unsharded checkpoint");
  }
  tutorial::StoredParameters parameters;
  for (const format::StoredTensor& tensor : checkpoint.tensors) {
    parameters[tensor.name] = read_array(checkpoint, tensor);
  }
  if (parameters.contains(tutorial::bias_name(0)) != parameters.contains(tutorial::bias_name(1))) {
    throw Error(ErrorCode::kUnsupported, "one layer has a bias and the other has none")
        .at({location, 0, 0, ""})
        .help("add a bias of zeros");
  }
  return parameters;
}

/// Sizes with a batch, and features, for this many devices.
tutorial::DemoSizes default_sizes(int ranks) {
  tutorial::DemoSizes sizes = kSizes;
  for (i64* size : {&sizes.in, &sizes.hidden, &sizes.out, &sizes.batch}) {
    *size = std::max(*size, kPerDevice * ranks + 1);
  }
  return sizes;
}

tutorial::DemoSizes sizes_of(const DemoRunOptions& options,
                             const tutorial::StoredParameters& stored, int ranks) {
  if (options.sizes && !stored.empty()) {
    throw Error(ErrorCode::kUsage, "the checkpoint has the sizes of the model")
        .help("leave the sizes out");
  }
  tutorial::DemoSizes sizes = options.sizes.value_or(default_sizes(ranks));
  if (!stored.empty()) {
    const auto layers = tutorial::two_layers(tutorial::numbers_of<double>(stored));
    sizes.in = layers.in;
    sizes.hidden = layers.hidden;
    sizes.out = layers.out;
  }
  sizes.seed = options.seed;
  return sizes;
}

/// The engine that carries the numbers.
comm::EngineChoice carrier_of(const DemoRunOptions& options) {
  comm::EngineChoice choice = options.engine;
  if (!options.gpu_virtual) return choice;
  require_one_process(choice, kGpuVirtualName);
  choice.engine = comm::Engine::kEmbedded;
  return choice;
}

/// Opens this rank's accelerator; null: the CPU.
std::unique_ptr<kernels::Accelerator> accelerator_of(const DemoRunOptions& options,
                                                     comm::Communicator& comm) {
  if (options.open_accelerator) return options.open_accelerator(comm.rank());
  if (options.gpu_virtual) return open_gpu_of_rank(comm.rank());
  if (options.engine.chosen() == comm::Engine::kNccl) return open_own_gpu(comm);
  return nullptr;
}

/// Runs a rank, and adds its view of the run to the report.
void run_rank(const DemoRunOptions& options, const tutorial::DemoSystems& systems,
              comm::Communicator& comm, DemoRunReport& report) {
  const auto accelerator = accelerator_of(options, comm);
  if (accelerator != nullptr) {
    report.backend = accelerator->backend();
    report.accelerators = comm.all_gather(accelerator->name());
  }
  report.demo = tutorial::run_mlp_demo(comm, systems, accelerator.get());
}

}  // namespace

DemoRunReport run_demo(const DemoRunOptions& options) {
  const comm::EngineChoice engine = carrier_of(options);
  DemoRunReport blank;
  blank.engine = options.gpu_virtual ? kGpuVirtualName : comm::name_of(engine.chosen());
  const bool embedded = engine.chosen() == comm::Engine::kEmbedded;
  const int ranks = engine.ranks(options.ranks);
  tutorial::DemoSystems systems;
  comm::before_meeting(engine, [&] {
    tutorial::StoredParameters stored;
    if (!options.checkpoint.empty()) stored = read_parameters(options.checkpoint);
    systems = tutorial::demo_systems(sizes_of(options, stored, ranks), ranks, stored);
  });
  DemoRunReport report;
  comm::run_ranks(engine, ranks, [&](comm::Communicator& comm) {
    DemoRunReport of_rank = blank;
    run_rank(options, systems, comm, of_rank);
    if (!embedded || comm.rank() == 0) report = std::move(of_rank);
  });
  return report;
}

}  // namespace shardtool::api
