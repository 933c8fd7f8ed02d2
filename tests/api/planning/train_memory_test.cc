// Memory of training, and of devices with sequences of their own.
#include <doctest/doctest.h>

#include "tests/api/planning/published_memory.h"

namespace shardtool::api {
namespace {

using test::PublishedModel;

TEST_CASE("training counts layers whose number config.json says as a pattern alone") {
  PlanOptions options;
  options.training = TrainingPlan{};
  options.training->sequence = 16;
  CHECK(memory(golden_model("nemotron_h"), "tp=1", options).devices[0].activations > 0);
}

TEST_CASE("activations of training count the experts that tokens choose, on their devices") {
  PlanOptions options;
  options.training = TrainingPlan{};
  options.training->sequence = 100;
  options.training->recompute = plan::Recompute::kSelective;
  const auto kept = [&](const char* mesh) {
    return memory(golden_model("mixtral"), mesh, options).devices.front().activations;
  };
  // 48 features of the stream. 64, 32 and 32 of q, k and v, and 64 of o's input; scores of 8
  // experts; 3 chosen experts with an input of 48, and 12 of gate, of up and of down's input.
  constexpr i64 kWhole = 10 * 48 + 2 * (192 + 8 + 3 * (48 + 3 * 12));
  CHECK(kept("tp=1") == 100 * 2 * kWhole);
  CHECK(kept("ep=2") == 100 * 2 * kWhole);
  CHECK(kept("tp=2") == 100 * 2 * (10 * 48 + 2 * (96 + 8 + 3 * (48 + 3 * 6))));
  // The first of two stages has one layer, and two micro-batches.
  CHECK(kept("pp=2") == 2 * 100 * kWhole);
}

TEST_CASE("training: weights, gradients and Adam of one device's parameters, by stage") {
  PlanOptions options;
  options.training = TrainingPlan{};
  const PublishedModel model = test::llama_3_8b();
  CHECK(memory(model, "tp=1", options).devices[0].total == 16 * parameters(model));
  options.training->zero_stage = 3;
  options.training->data_parallel = 8;
  const PlanDevice device = memory(model, "tp=1", options).devices[0];
  CHECK(device.training == 2 * parameters(model));
  // The head and the last norm, with gradients: 4 bytes of each parameter that others hold.
  constexpr i64 kHead = 128256 * 4096 + 4096;
  CHECK(device.gathered == 4 * (kHead - kHead / 8));
  CHECK(device.total == device.training + device.gathered);
}

TEST_CASE("devices along an axis of experts alone, and replicas, cache their own sequences") {
  PlanOptions options;
  options.workload.batch = 5;
  options.workload.context = 64;
  options.workload.prompt_len = 16;
  const auto fullest = [&](const char* mesh) {
    const MemoryReport report = memory(golden_model("mixtral"), mesh, options);
    return report.devices[report.fullest];
  };
  const PlanDevice alone = fullest("tp=1");
  const PlanDevice of_two = fullest("ep=2");
  CHECK(5 * of_two.kv == 3 * alone.kv);  // 3 of 5 sequences
  CHECK(5 * of_two.activations == 3 * alone.activations);
  CHECK(of_two.kv_per_token == alone.kv_per_token);
  CHECK(memory(golden_model("mixtral"), "ep=2", options).sequence_groups == 2);
  CHECK(memory(golden_model("mixtral"), "tp=2", options).sequence_groups == 1);
  CHECK(10 * fullest("ep=2,tp=2").kv == 3 * alone.kv);  // and half of the heads
  const PlanDevice replica = fullest("dp=2");
  CHECK(5 * replica.kv == 3 * alone.kv);
  CHECK(replica.weights == alone.weights);
  CHECK(memory(golden_model("mixtral"), "dp=2,tp=2", options).sequence_groups == 2);
}

}  // namespace
}  // namespace shardtool::api
