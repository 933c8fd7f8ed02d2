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
  report.engine = comm::name_of(options.engine.chosen());
  const bool embedded = options.engine.chosen() == comm::Engine::kEmbedded;
  const int ranks = options.engine.ranks(options.ranks);
  comm::run_ranks(options.engine, ranks, [&](comm::Communicator& comm) {
    const auto demo = tutorial::run_mlp_demo(comm, sizes_for(ranks, options.seed));
    if (!embedded || comm.rank() == 0) report.demo = demo;
  });
  return report;
}

}  // namespace shardtool::api
