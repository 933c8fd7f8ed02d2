#include "lib/tutorial/shardings/pipeline.h"

#include <doctest/doctest.h>

#include "lib/tutorial/proof/proof.h"
#include "tests/support/throws.h"
#include "tests/tutorial/on_devices.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

const std::vector<i64> kFiveLayers{4, 6, 3, 7, 5, 2};
constexpr i64 kMicrobatches = 8;

struct Found {
  Matrix<double> y;
  Parameters<double> gradients;
  i64 most_in_flight = 0;
  bool operator==(const Found&) const = default;
};

std::vector<Found> step_on(int devices, PipelineSchedule schedule) {
  const auto example = random_layers<double>(kFiveLayers, 19, 5);
  return on_devices<double>(devices, [&](Device<double>& device) {
    Pipeline<double> pipeline(device, kMicrobatches);
    pipeline.load_checkpoint(example.parameters);
    const int here = device.device_id();
    auto result = pipeline.step(cut(example.x, pipeline.input(19), here),
                                cut(example.g, pipeline.output(19), here), schedule);
    return Found{result.y, result.gradients, result.most_in_flight};
  });
}

TEST_CASE("GPipe keeps every microbatch, 1F1B as many as stages follow, as was counted") {
  for (int devices = 1; devices <= 5; ++devices) {
    const auto gpipe = step_on(devices, PipelineSchedule::kGpipe);
    const auto one_f_one_b = step_on(devices, PipelineSchedule::k1F1B);
    for (int stage = 0; stage < devices; ++stage) {
      CHECK(gpipe[stage].most_in_flight == kMicrobatches);
      CHECK(one_f_one_b[stage].most_in_flight == std::min<i64>(kMicrobatches, devices - stage));
    }
  }
}

TEST_CASE("the schedule does not change one bit of outputs and gradients, in f64") {
  const auto gpipe = step_on(4, PipelineSchedule::kGpipe);
  const auto one_f_one_b = step_on(4, PipelineSchedule::k1F1B);
  const auto example = random_layers<double>(kFiveLayers, 19, 5);
  const auto halves = on_devices<double>(4, [&](Device<double>& device) {
    Pipeline<double> pipeline(device, kMicrobatches);
    pipeline.load_checkpoint(example.parameters);
    auto outcome = run_both_ways<double>(device, pipeline, example);
    return Found{outcome.y, outcome.gradients, 0};
  });
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(gpipe[stage].y == one_f_one_b[stage].y);
    CHECK(gpipe[stage].gradients == one_f_one_b[stage].gradients);
    CHECK(halves[stage].y == gpipe[stage].y);
    CHECK(halves[stage].gradients == gpipe[stage].gradients);
  }
}

TEST_CASE("a stage has the layers and gradients that are its own") {
  const auto found = step_on(2, PipelineSchedule::k1F1B);
  const auto names = [&](int stage) {
    std::vector<std::string> all;
    for (const auto& [name, gradient] : found[stage].gradients) {
      if (!name.ends_with("/bias")) all.push_back(name);
    }
    return all;
  };
  using Gradients = std::vector<std::string>;
  CHECK(names(0) == Gradients{"dx", "layer_0/weights", "layer_1/weights", "layer_2/weights"});
  CHECK(names(1) == Gradients{"layer_3/weights", "layer_4/weights"});
  CHECK(found[0].y == Matrix<double>());
  CHECK(found[1].y.rows() == 19);
}

TEST_CASE("fewer layers than stages, or rows than microbatches, are refused") {
  const auto run = [](const std::vector<i64>& sizes, i64 batch) {
    const auto example = random_layers<Field>(sizes, batch, 1);
    return on_devices<Field>(3, [&](Device<Field>& device) {
      Pipeline<Field> pipeline(device, 4);
      pipeline.load_checkpoint(example.parameters);
      run_both_ways<Field>(device, pipeline, example);
      return 0;
    });
  };
  const auto few_layers = testing::error_of([&] { return run({3, 3, 3}, 4); });
  REQUIRE(few_layers.has_value());
  CHECK(few_layers->message() == "rank 2 of 3 would hold none of the 2 layers");
  CHECK_ERROR(kEmptyShard, run({3, 3, 3, 3}, 3));
  CHECK(run({3, 3, 3, 3}, 4).size() == 3);
}

}  // namespace
