#include "lib/api/demo.h"

#include "lib/comm/engine.h"

namespace shardtool::api {
namespace {

/// Sizes that do not divide by four, so that parts differ in size.
constexpr tutorial::DemoSizes kSizes{12, 22, 9, 10, 0};
/// Gives each device at least one feature.
constexpr i64 kPerDevice = 2;

tutorial::DemoSizes sizes_for(int ranks, std::uint64_t seed) {
  tutorial::DemoSizes sizes = kSizes;
  for (i64* size : {&sizes.in, &sizes.hidden, &sizes.out, &sizes.batch}) {
    *size = std::max(*size, kPerDevice * ranks + 1);
  }
  sizes.seed = seed;
  return sizes;
}

}  // namespace

DemoRunReport run_demo(const DemoRunOptions& options) {
  DemoRunReport report;
  report.engine = options.engine;
  if (report.engine.empty()) report.engine = options.launch ? "tcp" : "embedded";
  comm::EngineOptions engine;
  engine.engine = comm::engine_named(report.engine);
  engine.launch = options.launch;
  engine.meeting = options.meeting;
  engine.mpi_plugin = options.mpi_plugin;
  const bool embedded = engine.engine == comm::Engine::kEmbedded;
  const int ranks = embedded ? options.ranks : options.launch ? options.launch->size : 1;
  comm::run_ranks(engine, ranks, [&](comm::Communicator& comm) {
    const auto demo = tutorial::run_mlp_demo(comm, sizes_for(ranks, options.seed));
    if (!embedded || comm.rank() == 0) report.demo = demo;
  });
  return report;
}

}  // namespace shardtool::api
