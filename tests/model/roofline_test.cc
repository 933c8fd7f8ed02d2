#include "lib/model/roofline.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using namespace shardtool;
using doctest::Approx;

namespace {

/// Roofline of bf16 products at these rates, without losses and launches.
model::Roofline roofline_of(double flops, double params_bytes, double cache_bytes,
                            double flops_per_s, double bytes_per_s) {
  plan::HardwareProfile profile;
  profile.rates.bf16_tflops = flops_per_s / 1e12;
  profile.memory_gb_per_s = bytes_per_s / 1e9;
  model::Amounts amounts;
  amounts.flops.front() = flops;
  amounts.weight_bytes = params_bytes;
  amounts.cache_bytes = cache_bytes;
  return model::roofline(amounts, profile, 0);
}

/// Milliseconds of the roofline of one step.
double step_ms(double params_bytes, double cache_bytes, double flops, double flops_per_s,
               double bytes_per_s) {
  return roofline_of(flops, params_bytes, cache_bytes, flops_per_s, bytes_per_s).step_us / 1e3;
}

}  // namespace

TEST_CASE("a step is no shorter than its bytes at the memory's bandwidth") {
  // scaling-book inference.md: LLaMA-2-13B in bf16 with 8,192 tokens of cache on eight v5e
  constexpr double kParams = 26e9, kCache = 6.7e9, kBytes = 6.56e12, kFlops = 8 * 1.97e14;
  const auto step = [&](double batch, double cache) {
    return step_ms(kParams, batch * cache, batch * kParams, kFlops, kBytes);
  };
  const std::vector<std::pair<double, double>> full{{1, 4.98},   {8, 12.13},  {16, 20.30},
                                                    {32, 36.65}, {64, 69.33}, {240, 249.09}};
  for (const auto& [batch, ms] : full) CHECK(step(batch, kCache) == Approx(ms).epsilon(1e-3));
  const std::vector<std::pair<double, double>> fifth{{1, 4.17},   {8, 5.60},   {16, 7.23},
                                                     {32, 10.50}, {64, 17.04}, {240, 52.99}};
  for (const auto& [batch, ms] : fifth)
    CHECK(step(batch, kCache / 5) == Approx(ms).epsilon(1.5e-3));
  // the same book: 30B in int8, 100 kB per token, 8,192 tokens, 16 v5e; batch 4 and 256
  constexpr double kV5e = 8.1e11;
  CHECK(step_ms(30e9, 4 * 8192 * 1e5, 2 * 4 * 30e9, 16 * 1.97e14, 16 * kV5e) ==
        Approx(2.57).epsilon(2e-3));
  CHECK(step_ms(30e9, 256 * 8192 * 1e5, 2 * 256 * 30e9, 16 * 1.97e14, 16 * kV5e) ==
        Approx(21.05).epsilon(2e-3));
  // applied-inference.md: Llama-3-70B in int8, batch 32, 160 kB per token, eight v5e: 17.3 ms
  CHECK(step_ms(70e9, 32 * 8192 * 160e3, 0, 1, 8 * kV5e) == Approx(17.3).epsilon(3e-3));
}

TEST_CASE("a product of matrices is bound by memory, then by compute") {
  // gpus.md quiz 1: fp16 [64 | 512, 4096] x [4096, 8192] on B200 at 8 TB/s and 2.25 PFLOP/s
  const auto product = [](double rows) {
    const double bytes = 2 * (rows * 4096 + 4096.0 * 8192 + rows * 8192);
    return roofline_of(2 * rows * 4096 * 8192, bytes, 0, 2.25e15, 8e12);
  };
  CHECK(product(64).step_us == Approx(8.6).epsilon(0.01));
  CHECK(product(64).bound == model::Roofline::Bound::kMemory);
  CHECK(product(512).step_us == Approx(15.3).epsilon(0.01));
  CHECK(product(512).bound == model::Roofline::Bound::kCompute);
}

TEST_CASE(
    "narrow weights take longer than their bytes and flops, unless an expert's are multiplied") {
  const auto roof_of = [](bool has_fp4, const model::Amounts& amounts) {
    plan::HardwareProfile profile;
    profile.rates.bf16_tflops = 1;
    if (has_fp4) profile.rates.fp4_tflops = 4;
    profile.memory_gb_per_s = 1;
    return model::roofline(amounts, profile, 0);
  };
  constexpr auto kFp4 = static_cast<size_t>(plan::Arithmetic::kFp4);
  model::Amounts amounts;
  amounts.weight_bytes = 1e6;
  amounts.flops[kFp4] = 1e9;
  for (const bool has_fp4 : {false, true}) {
    const model::Roofline plain = roof_of(has_fp4, amounts);
    const auto check = [&](const model::Amounts& of, double times) {
      CHECK(roof_of(has_fp4, of).memory_us == times * plain.memory_us);
      CHECK(roof_of(has_fp4, of).compute_us == Approx(times * plain.compute_us));
    };
    model::Amounts expert = amounts;
    expert.fp4_expert_bytes = expert.weight_bytes;
    expert.fp4_expert_flops = expert.flops;
    check(expert, has_fp4 ? 1 : 1.5);
    model::Amounts narrow = amounts;
    narrow.narrow_bytes = narrow.weight_bytes;
    narrow.narrow_flops = narrow.flops;
    check(narrow, 1.5);
  }
}

TEST_CASE("weights in FP4 with values in FP8 run at the rate of FP8 where the device has FP4") {
  constexpr auto kKind = plan::Arithmetic::kFp4WithFp8;
  for (const bool has_fp8 : {false, true}) {
    for (const bool has_fp4 : {false, true}) {
      plan::HardwareProfile profile;
      profile.rates.bf16_tflops = 1;
      if (has_fp8) profile.rates.fp8_tflops = 2;
      if (has_fp4) profile.rates.fp4_tflops = 4;
      profile.memory_gb_per_s = 1;
      const bool is_multiplied = has_fp8 && has_fp4;
      CHECK(profile.rates.has(kKind) == is_multiplied);
      model::Amounts amounts;
      amounts.flops[static_cast<size_t>(kKind)] = 4e6;
      CHECK(model::roofline(amounts, profile, 0).compute_us == (is_multiplied ? 2 : 4));
      CHECK(to_string(model::roofline(amounts, profile, 0).arithmetic) ==
            (is_multiplied ? "fp8" : "bf16"));
      // Kernels unpack the weights of experts for products in bf16.
      amounts.fp4_expert_flops = amounts.flops;
      CHECK(model::roofline(amounts, profile, 0).compute_us == (is_multiplied ? 2 : 6));
    }
  }
}
