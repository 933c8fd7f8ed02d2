#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "kernels/crc64/crc64.h"
#include "kernels/crc64/implementation.h"
#include "kernels/digest/placed_crc64.h"
#include "kernels/float_census/float_census.h"
#include "kernels/product/implementation.h"
#include "kernels/strided_copy/strided_copy.h"
#include "kernels/xxh3/xxh3.h"

namespace shardtool::kernels {
namespace {

constexpr i64 kBufferBytes = i64{256} << 10;  // fits the second-level cache
constexpr i64 kRanks = 4;

std::vector<std::byte> buffer(i64 bytes) {
  std::vector<std::byte> bytes_of(static_cast<size_t>(bytes));
  for (size_t i = 0; i < bytes_of.size(); ++i) bytes_of[i] = static_cast<std::byte>(i * 131 >> 3);
  return bytes_of;
}

/// A rank's columns, packed in the buffer, of a matrix with rows of kRanks runs.
index::StridedCopy column_shard(i64 run) {
  return {.src = 0, .dst = 0, .run = run, .loops = {{kBufferBytes / run, run, kRanks * run}}};
}

void memory_copy(benchmark::State& state) {
  const auto from = buffer(kBufferBytes);
  auto to = buffer(kBufferBytes);
  for (auto _ : state) {
    std::copy(from.begin(), from.end(), to.begin());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kBufferBytes);
}
BENCHMARK(memory_copy);

void crc64(benchmark::State& state, const Implementation& implementation) {
  const auto bytes = buffer(kBufferBytes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(implementation.rows({.first = bytes.data(), .run = kBufferBytes}));
  }
  state.SetBytesProcessed(state.iterations() * kBufferBytes);
}

void xxh3(benchmark::State& state) {
  const auto bytes = buffer(kBufferBytes);
  Xxh3 hash;
  for (auto _ : state) hash.update(bytes);
  benchmark::DoNotOptimize(hash.hex());
  state.SetBytesProcessed(state.iterations() * kBufferBytes);
}
BENCHMARK(xxh3);

/// Finite values, as in weights.
void float_census_of(benchmark::State& state, Dtype dtype) {
  auto bytes = buffer(kBufferBytes);
  for (std::byte& byte : bytes) byte &= std::byte{0x3f};
  for (auto _ : state) benchmark::DoNotOptimize(float_census(dtype, bytes));
  state.SetBytesProcessed(state.iterations() * kBufferBytes);
}
BENCHMARK_CAPTURE(float_census_of, bf16, Dtype::kBF16);
BENCHMARK_CAPTURE(float_census_of, f32, Dtype::kF32);
BENCHMARK_CAPTURE(float_census_of, f8_e4m3, Dtype::kF8E4M3);

void placed_crc64_of_columns(benchmark::State& state) {
  const auto bytes = buffer(kBufferBytes);
  const auto copy = column_shard(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(placed_crc64(copy, bytes.data(), kRanks * kBufferBytes));
  }
  state.SetBytesProcessed(state.iterations() * kBufferBytes);
}
BENCHMARK(placed_crc64_of_columns)->RangeMultiplier(2)->Range(1, i64{64} << 10)->Arg(7168);

void strided_copy_of_columns(benchmark::State& state) {
  const auto from = buffer(kBufferBytes);
  auto to = buffer(kRanks * kBufferBytes);
  const auto copy = column_shard(state.range(0));
  for (auto _ : state) {
    strided_copy(copy, from.data(), to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kBufferBytes);
}
BENCHMARK(strided_copy_of_columns)->RangeMultiplier(2)->Range(1, i64{64} << 10)->Arg(12);

/// Gathers one rank's part from a matrix.
void strided_copy_to_columns(benchmark::State& state) {
  const auto from = buffer(kRanks * kBufferBytes);
  auto to = buffer(kBufferBytes);
  auto copy = column_shard(state.range(0));
  std::swap(copy.loops[0].src_stride, copy.loops[0].dst_stride);
  for (auto _ : state) {
    strided_copy(copy, from.data(), to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kBufferBytes);
}
BENCHMARK(strided_copy_to_columns)->RangeMultiplier(2)->Range(1, i64{64} << 10)->Arg(12);

/// Chunk of a bf16 matrix, as in `validate`.
constexpr i64 kChunkBytes = i64{4} << 20;
constexpr i64 kColumns = 4096;
/// Rows of x per product in `validate`.
constexpr i64 kFieldTokens = 3;
constexpr i64 kFloatTokens = 8;

/// Product of rows of x and a bf16 matrix; bytes are those of the weights.
template <class N, class Multiply>
void product(benchmark::State& state, i64 tokens, const Multiply& multiply) {
  const auto bytes = buffer(kChunkBytes);
  const i64 rows = kChunkBytes / (2 * kColumns);
  const StoredMatrix w{Dtype::kBF16, bytes.data(), rows, kColumns};
  const i64 longest = std::max(rows, kColumns);
  const std::vector<N> x(static_cast<size_t>(tokens * longest), N{3});
  std::vector<N> y(static_cast<size_t>(tokens * longest));
  for (auto _ : state) {
    multiply(w, RowView<const N>{x.data(), tokens, longest}, RowView<N>{y.data(), tokens, longest});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kChunkBytes);
}

void register_products() {
  for (const ProductImplementation& way : product_implementations()) {
    const std::string name = way.name;
    benchmark::RegisterBenchmark(
        ("rows of residues/" + name).c_str(), [way](benchmark::State& state) {
          product<Field>(state, kFieldTokens,
                         [&](const StoredMatrix& w, RowView<const Field> x, RowView<Field> y) {
                           way.rows_of_residues(w, NumberMap::kBits, x, y);
                         });
        });
    benchmark::RegisterBenchmark(
        ("columns of residues/" + name).c_str(), [way](benchmark::State& state) {
          product<Field>(state, kFieldTokens,
                         [&](const StoredMatrix& w, RowView<const Field> x, RowView<Field> y) {
                           way.columns_of_residues(w, NumberMap::kBits, x, y);
                         });
        });
    benchmark::RegisterBenchmark(("rows of doubles/" + name).c_str(),
                                 [way](benchmark::State& state) {
                                   product<double>(state, kFloatTokens, way.rows_of_doubles);
                                 });
  }
}

void register_crc64() {
  for (const Implementation& implementation : implementations()) {
    benchmark::RegisterBenchmark((std::string("crc64/") + implementation.name).c_str(), crc64,
                                 implementation);
  }
}

}  // namespace
}  // namespace shardtool::kernels

int main(int argc, char** argv) {
  shardtool::kernels::register_crc64();
  shardtool::kernels::register_products();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
