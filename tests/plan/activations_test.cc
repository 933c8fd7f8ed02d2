#include "lib/plan/activations.h"

#include <doctest/doctest.h>

#include "lib/plan/training.h"
#include "tests/plan/gib.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::Recompute;
using plan::TrainedLayer;
using plan::training_activations_per_layer;

namespace {

/// Models of Korthikanti et al., table 3, as in Calculon's validation.
TrainedLayer of_22b(bool sequence_parallel, Recompute recompute) {
  return {2048, 4, 6144, 64 / 8, 8, 12 * 6144 / 8, sequence_parallel, recompute};
}
TrainedLayer of_175b(bool sequence_parallel, Recompute recompute) {
  return {2048, 1, 12288, 96 / 8, 8, 12 * 12288 / 8, sequence_parallel, recompute};
}
/// Interleaving by m stages over p pipeline ranks keeps the first rank 1 + (p - 1) / (p m) of them.
constexpr double kInterleaved = 1 + 7.0 / (8 * 3);

TEST_CASE("activations of a model of 22 billion: 59.25 and 9.5625 GiB (D26)") {
  const auto gib = [](const TrainedLayer& layer) {
    return training_activations_per_layer(layer) * 48 / kGib;
  };
  CHECK(gib(of_22b(false, Recompute::kNone)) == doctest::Approx(59.25).epsilon(1e-9));
  CHECK(gib(of_22b(true, Recompute::kSelective)) == doctest::Approx(9.5625).epsilon(1e-9));
}

TEST_CASE("activations of a model of 175 billion: 66.84375 and 12.3515625 GiB (D26)") {
  const auto gib = [](const TrainedLayer& layer) {
    return training_activations_per_layer(layer) * 96 * kInterleaved / kGib;
  };
  CHECK(gib(of_175b(false, Recompute::kNone)) == doctest::Approx(66.84375).epsilon(1e-9));
  CHECK(gib(of_175b(true, Recompute::kSelective)) == doctest::Approx(12.3515625).epsilon(1e-9));
}

TEST_CASE("both models keep 45.5625 GiB of weights, FP32 gradients and optimizer each (D26)") {
  constexpr plan::TrainingState kWithFullGradients{2, 4, 12};
  const auto gib = [&](i64 layers, i64 hidden, i64 devices) {
    const i64 parameters = 12 * layers * hidden * hidden / devices;
    return static_cast<double>(plan::zero_state_bytes(parameters, 0, 1, kWithFullGradients)) / kGib;
  };
  CHECK(gib(48, 6144, 8) == doctest::Approx(45.5625).epsilon(1e-9));
  CHECK(gib(96, 12288, 64) == doctest::Approx(45.5625).epsilon(1e-9));
}

TEST_CASE("of a layer of 22 billion: 66.8, 49.4 and 16.1 percent (D27)") {
  const double none = training_activations_per_layer(of_22b(false, Recompute::kNone));
  const auto percent = [&](bool sequence_parallel, Recompute recompute) {
    return 100 * training_activations_per_layer(of_22b(sequence_parallel, recompute)) / none;
  };
  CHECK(percent(true, Recompute::kNone) == doctest::Approx(66.8).epsilon(1e-3));
  CHECK(percent(false, Recompute::kSelective) == doctest::Approx(49.4).epsilon(1e-3));
  CHECK(percent(true, Recompute::kSelective) == doctest::Approx(16.1).epsilon(3e-3));
}

TEST_CASE("full recomputation keeps the inputs of layers alone") {
  CHECK(training_activations_per_layer(of_22b(false, Recompute::kFull)) == 2.0 * 2048 * 4 * 6144);
  CHECK(training_activations_per_layer(of_22b(true, Recompute::kFull)) ==
        2.0 * 2048 * 4 * 6144 / 8);
}

TEST_CASE("full recomputation makes one layer again, without its input") {
  const double whole = training_activations_per_layer(of_22b(false, Recompute::kNone));
  CHECK(plan::recomputed_activations(of_22b(false, Recompute::kFull)) ==
        whole - 2.0 * 2048 * 4 * 6144);
  CHECK(plan::recomputed_activations(of_22b(false, Recompute::kNone)) == 0);
  CHECK(plan::recomputed_activations(of_22b(false, Recompute::kSelective)) == 0);
}

TEST_CASE("the head keeps 4 s b h (1 + v / h) / t with sequence parallelism (section 4.3)") {
  constexpr i64 kVocab = 51200;
  TrainedLayer head = of_22b(true, Recompute::kNone);
  head.inner = kVocab / 8;
  constexpr double kTokens = 2048 * 4;
  CHECK(plan::training_head_activations(head) ==
        doctest::Approx(4 * kTokens * 6144 * (1 + kVocab / 6144.0) / 8));
  head.sequence_parallel = false;
  CHECK(plan::training_head_activations(head) == kTokens * (4 * 6144 + 4 * kVocab / 8));
}

TEST_CASE("a forward pass: two streams and the widest block per token, logits per sequence") {
  // 10 tokens of (2 * 8 + 32) elements of 2 bytes, and 3 sequences of 100 logits of 4 bytes.
  CHECK(plan::inference_activations({8, 24, 32, 100}, 16, 10, 3) == 10 * 48 * 2 + 3 * 100 * 4);
  CHECK(plan::inference_activations({8, 40, 32, 0}, 16, 1, 3) == 56 * 2);
  CHECK_ERROR(kLimit, plan::inference_activations({i64{1} << 50, 0, 0, 0}, 16, i64{1} << 30, 1));
}

}  // namespace
