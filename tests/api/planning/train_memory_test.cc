// Memory of training, and of devices with sequences of their own.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <utility>

#include "lib/mapping/resolve/resolve.h"
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
  // 96 logits, and the inputs of the head and of its norm.
  constexpr i64 kHead = 4 * (48 + 96);
  CHECK(kept("tp=1") == 100 * (2 * kWhole + kHead));
  CHECK(kept("ep=2") == 100 * (2 * kWhole + kHead));
  CHECK(kept("tp=2") ==
        100 * (2 * (10 * 48 + 2 * (96 + 8 + 3 * (48 + 3 * 6))) + 4 * (48 + 96 / 2)));
  // The first of two stages has one layer, and two micro-batches.
  CHECK(kept("pp=2") == 2 * 100 * kWhole);
}

TEST_CASE("training keeps the logits in FP32, and then one layer that full recomputation repeats") {
  constexpr i64 kTokens = 8192;
  PlanOptions options;
  options.training = TrainingPlan{};
  options.training->sequence = kTokens;
  const PublishedModel model = test::llama_3_8b();
  const auto devices = [&](const char* mesh, plan::Recompute recompute) {
    options.training->recompute = recompute;
    return memory(model, mesh, options).devices;
  };
  // q, k, v, the input of o; gate, up, the input of down.
  constexpr i64 kInner = 4096 + 2 * 1024 + 4096 + 3 * 14336;
  constexpr i64 kLayer = kTokens * (10 * 4096 + 2 * kInner);
  constexpr i64 kHead = kTokens * 4 * (4096 + 128256);
  using enum plan::Recompute;
  CHECK(devices("tp=1", kSelective)[0].activations == 32 * kLayer + kHead);
  CHECK(devices("tp=2", kSelective)[0].activations ==
        kTokens * (32 * (10 * 4096 + kInner) + 4 * (4096 + 128256 / 2)));
  constexpr i64 kInput = 2 * kTokens * 4096;
  constexpr i64 kScores = kTokens * 5 * 32 * kTokens;
  CHECK(devices("tp=1", kNone)[0].activations == 32 * (kLayer + kScores) + kHead);
  // The head's are freed before the first layer is computed again, which needs more here.
  CHECK(devices("tp=1", kFull)[0].activations == 32 * kInput + kLayer + kScores - kInput);
  options.training->sequence = 128;
  CHECK(devices("tp=1", kFull)[0].activations == 128 * (32 * 2 * 4096 + 4 * (4096 + 128256)));
  // The head is on the last of two stages, with one micro-batch.
  options.training->sequence = kTokens;
  const auto stages = devices("pp=2", kSelective);
  CHECK(stages[0].activations == 2 * 16 * kLayer);
  CHECK(stages[1].activations == 2 * 16 * kLayer + kHead);
}

TEST_CASE("memory of training depends on what mesh axes cut, not on their names") {
  const PublishedModel model = test::llama_3_8b();
  const auto config = mapping::parse_config(model.config, "config.json");
  const auto activations = [&](const std::string& mesh, const std::string& tp,
                               const std::string& pp) {
    AppliedMapping applied = applied_to(model, config, "tp=1");
    mapping::ResolveOptions resolve;
    resolve.mesh = mesh::parse_mesh(mesh);
    for (const char* axis : {"vocab", "heads", "kv_heads", "mlp"})
      resolve.settings.emplace_back(fmt::format("axes.{}.mesh", axis), tp);
    resolve.settings.emplace_back("axes.layers.mesh", pp);
    applied.resolution = mapping::resolve(applied.mapping, applied.specs, &config, resolve);
    PlanOptions options;
    options.training = TrainingPlan{};
    options.training->sequence = 4096;
    options.workload.sequence_parallel = true;
    std::vector<std::string> notes;
    const MemoryReport report = device_memory(&config, applied, options, notes);
    return std::pair(report.devices.front().activations, report.devices.back().activations);
  };
  const auto usual = activations("pp=2,tp=4", "tp", "pp");
  CHECK(activations("stage=2,model=4", "model", "stage") == usual);
  CHECK(usual.first < activations("pp=2,tp=4", "null", "pp").first);
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

TEST_CASE(
    "the stages that run an end of the model train it, and tied weights are trained on both") {
  test::LlamaLike sizes{
      .layers = 4, .hidden = 64, .heads = 8, .kv_heads = 2, .head_dim = 8, .mlp = 96, .vocab = 100};
  // q and o, k and v, gate, up and down; two norms.
  constexpr i64 kBlock = 64 * (2 * 64 + 2 * 16 + 3 * 96) + 2 * 64;
  constexpr i64 kNorm = 64;
  constexpr i64 kWords = 100 * 64;
  PlanOptions options;
  options.training = TrainingPlan{};
  const auto trained = [&](size_t rank) {
    return memory(test::llama_like(sizes), "pp=4", options).devices[rank].training;
  };
  // The weights of both ends are on every stage: 2 of 16 bytes.
  CHECK(trained(0) == 16 * (kBlock + kWords) + 2 * (kWords + kNorm));
  CHECK(trained(1) == 16 * kBlock + 2 * (2 * kWords + kNorm));
  CHECK(trained(2) == trained(1));
  CHECK(trained(3) == 16 * (kBlock + kWords + kNorm) + 2 * kWords);
  sizes.tied = true;
  CHECK(trained(0) == 16 * (kBlock + kWords) + 2 * kNorm);
  CHECK(trained(1) == 16 * kBlock + 2 * (kWords + kNorm));
  CHECK(trained(3) == 16 * (kBlock + kWords + kNorm));
  options.training->zero_stage = 3;
  options.training->data_parallel = 2;
  CHECK(2 * trained(1) == 16 * kBlock + 2 * (kWords + kNorm));
}

TEST_CASE("ZeRO 3 gathers the layers that a stage runs: embeddings first, the head last") {
  PlanOptions options;
  options.training = TrainingPlan{};
  options.training->zero_stage = 3;
  options.training->data_parallel = 8;
  const auto devices = memory(test::llama_3_8b(), "pp=4", options).devices;
  const auto gathered = [](i64 parameters) { return 4 * (parameters - parameters / 8); };
  constexpr i64 kEmbedding = 128256 * 4096;
  // q and o, k and v, gate, up and down; two norms.
  constexpr i64 kBlock = 4096 * (2 * 4096 + 2 * 1024 + 3 * 14336) + 2 * 4096;
  CHECK(devices[0].gathered == gathered(kEmbedding));
  CHECK(devices[1].gathered == gathered(kBlock));
  CHECK(devices[2].gathered == gathered(kBlock));
  CHECK(devices[3].gathered == gathered(kEmbedding + 4096));
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
