// The join at the size of the largest open models: every weight matrix of a Llama-3-405B (126
// layers of 7), sharded over 1024 devices and moved to 1536. Floor: one visit per transfer.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "lib/index/join.h"
#include "lib/index/strided_copy.h"
#include "lib/layout/layout.h"

namespace shardtool {
namespace {

constexpr int kLayers = 126;

std::vector<Shape> weight_matrices() {
  constexpr i64 kHidden = 16384;
  constexpr i64 kKeyValue = 1024;
  constexpr i64 kMlp = 53248;
  const std::array<Shape, 7> block{{{kHidden, kHidden},
                                    {kKeyValue, kHidden},
                                    {kKeyValue, kHidden},
                                    {kHidden, kHidden},
                                    {kMlp, kHidden},
                                    {kMlp, kHidden},
                                    {kHidden, kMlp}}};
  std::vector<Shape> all;
  for (int layer = 0; layer < kLayers; ++layer) all.insert(all.end(), block.begin(), block.end());
  return all;
}

/// Fully sharded: rows over all devices.
layout::Layout fsdp(const Shape& shape, i64 devices) {
  return layout::Layout(
      mesh::Mesh({{"fsdp", devices}}), shape,
      {{layout::split(shape[0], {{"fsdp"}}), 1, {}}, {layout::whole(shape[1]), 1, {}}});
}

/// The number of copies between a source and a destination holder.
i64 count_transfers(const index::HolderJoin& join) {
  i64 transfers = 0;
  join.for_each_box([&](index::HolderJoin::Box box) {
    benchmark::DoNotOptimize(join.source_of(box));
    transfers += static_cast<i64>(join.destinations_of(box).size());
  });
  return transfers;
}

void join_fsdp_1024_to_1536(benchmark::State& state) {
  std::vector<std::pair<layout::Layout, layout::Layout>> moves;
  for (const Shape& shape : weight_matrices())
    moves.emplace_back(fsdp(shape, 1024), fsdp(shape, 1536));
  i64 transfers = 0;
  for (auto _ : state) {
    transfers = 0;
    for (const auto& [from, to] : moves) {
      transfers += count_transfers(index::HolderJoin(from.holders(), to.holders()));
    }
  }
  state.counters["tensors"] = static_cast<double>(moves.size());
  state.counters["transfers"] = static_cast<double>(transfers);
}
BENCHMARK(join_fsdp_1024_to_1536)->Unit(benchmark::kMillisecond);

void layouts_fsdp_1024_and_1536(benchmark::State& state) {
  const auto shapes = weight_matrices();
  for (auto _ : state) {
    for (const Shape& shape : shapes) {
      benchmark::DoNotOptimize(fsdp(shape, 1024));
      benchmark::DoNotOptimize(fsdp(shape, 1536));
    }
  }
  state.counters["tensors"] = static_cast<double>(shapes.size());
}
BENCHMARK(layouts_fsdp_1024_and_1536)->Unit(benchmark::kMillisecond);

void lower_a_column_cut(benchmark::State& state) {
  const Shape sizes{53248, 2048};
  const Shape begin{0, 4096};
  const Shape origin{0, 0};
  const Shape whole{53248, 16384};
  for (auto _ : state) {
    benchmark::DoNotOptimize(index::lower(sizes, {begin, whole}, {origin, sizes}, 16));
  }
}
BENCHMARK(lower_a_column_cut);

}  // namespace
}  // namespace shardtool

BENCHMARK_MAIN();
