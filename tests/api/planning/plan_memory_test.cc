// Memory of published models, compared with computed and measured numbers of other projects.

#include "lib/api/planning/plan_memory.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lib/api/planning/planned_model.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/quantization.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/store/local/file.h"
#include "tests/api/planning/published_memory.h"
#include "tests/golden/models.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::PublishedModel;

constexpr double kGib = 1024.0 * 1024 * 1024;

double weights_gib(const MemoryReport& report) {
  return static_cast<double>(report.devices.front().weights) / kGib;
}

// Qwen's count is asserted by llm-d-planner; the others are from the model cards.
TEST_CASE("parameters of published models (D18)") {
  CHECK(parameters(test::llama_3_8b()) == 8'030'261'248);
  CHECK(parameters(test::llama_3_70b()) == 70'553'706'496);
  CHECK(parameters(test::llama_3_405b()) == 405'853'388'800);
  CHECK(parameters(test::qwen_2_5_half_billion()) == 494'032'768);
  CHECK(parameters(test::qwen_3_32b()) == 32'762'123'264);
}

// Each value is the shape times 2 bytes, over 8.
TEST_CASE("Llama-3-70B in BF16 on eight devices, class by class (D19)") {
  const MemoryReport report = memory(test::llama_3_70b(), "tp=8");
  for (size_t rank = 0; rank < 8; ++rank) {
    CHECK(of_class(report, rank, "embedding") == 262'668'288);
    CHECK(of_class(report, rank, "head") == 262'668'288);
    CHECK(of_class(report, rank, "attention") == i64{1'342'177'280} + 335'544'320 + 1'342'177'280);
    CHECK(of_class(report, rank, "mlp") == 14'092'861'440);
    CHECK(of_class(report, rank, "norms") == 2'637'824);
    CHECK(of_class(report, rank, "other") == 0);
    CHECK(report.devices[rank].weights == 17'640'734'720);
    CHECK(report.devices[rank].replicated == (rank == 0 ? 0 : 2'637'824));
  }
}

TEST_CASE("Llama-3-70B on 2, 4 and 16 devices, on 16 each KV head is on two of them (D19)") {
  const auto gib = [](const std::string& mesh) {
    return weights_gib(memory(test::llama_3_70b(), mesh));
  };
  CHECK(gib("tp=2") == doctest::Approx(65.710).epsilon(1e-5));
  CHECK(gib("tp=4") == doctest::Approx(32.856).epsilon(2e-5));
  CHECK(gib("tp=8") == doctest::Approx(16.429).epsilon(4e-5));
  CHECK(gib("tp=16") == doctest::Approx(8.372).epsilon(6e-5));
}

/// Linear layers in FP8 with a BF16 scale per output channel, as compressed-tensors stores them.
PublishedModel in_fp8(PublishedModel model) {
  model.config.insert(model.config.rfind('}'), R"(, "quantization_config": {
    "quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"],
    "config_groups": {"group_0": {"targets": ["Linear"],
      "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}})");
  std::vector<TensorSpec> scales;
  for (TensorSpec& tensor : model.tensors) {
    const bool quantised =
        tensor.shape.size() == 2 && tensor.name.find("layers.") != std::string::npos;
    if (!quantised) continue;
    tensor.dtype = Dtype::kF8E4M3;
    scales.push_back({tensor.name + "_scale", Dtype::kBF16, {tensor.shape.front(), 1}});
  }
  model.tensors.insert(model.tensors.end(), scales.begin(), scales.end());
  return model;
}

// Sources: vllm-project/vllm issue 12330 and llm-d-planner's document of measured memory. An engine
// has some additional buffers, so it logs a little more, never less.
TEST_CASE("weights against what vLLM logged: never more, at most 0.1 GiB less (D20)") {
  struct Row {
    PublishedModel model;
    const char* mesh;
    double logged;
  };
  for (const Row& row :
       {Row{test::llama_3_8b(), "tp=1", 14.9595}, Row{test::qwen_3_32b(), "tp=1", 61.03},
        Row{test::qwen_3_32b(), "tp=2", 30.59}, Row{test::llama_3_8b(), "tp=1", 14.99},
        Row{in_fp8(test::llama_3_70b()), "tp=1", 67.72},
        Row{in_fp8(test::llama_3_70b()), "tp=2", 33.88}}) {
    const double predicted = weights_gib(memory(row.model, row.mesh));
    CAPTURE(row.logged);
    CHECK(predicted <= row.logged);
    CHECK(row.logged - predicted < 0.1);
  }
}

TEST_CASE("DeepSeek-V3 over eight expert-parallel devices: routed experts of 58 layers (D43)") {
  const PublishedModel model = test::deepseek_v3();
  PlanOptions options;
  options.classes = {{"routed", "model.layers.{3,4,5,6,7,8,9}.mlp.experts.**.weight"},
                     {"routed", "model.layers.{1,2,3,4,5}<tens>.mlp.experts.**.weight"},
                     {"routed", "model.layers.60.mlp.experts.**.weight"},
                     {"routed scales", "model.layers.{3,4,5,6,7,8,9}.mlp.experts.**_inv"},
                     {"routed scales", "model.layers.{1,2,3,4,5}<tens>.mlp.experts.**_inv"},
                     {"routed scales", "model.layers.60.mlp.experts.**_inv"}};
  const MemoryReport report = memory(model, "ep=8", options);
  for (size_t rank = 0; rank < 8; ++rank) {
    CHECK(of_class(report, rank, "routed") == 81'738'596'352);
    CHECK(of_class(report, rank, "routed scales") == 19'955'712);
  }
}

TEST_CASE("a token of Llama-3-70B: KV heads are dealt out up to eight devices, then replicated") {
  const auto per_token = [](const std::string& mesh) {
    const MemoryReport report = memory(test::llama_3_70b(), mesh);
    for (const PlanDevice& device : report.devices)
      CHECK(device.kv_per_token == report.devices.front().kv_per_token);
    return report.devices.front().kv_per_token;
  };
  CHECK(per_token("tp=1") == 2 * 80 * 8 * 128 * 2);
  CHECK(per_token("tp=4") == 2 * 80 * 2 * 128 * 2);
  CHECK(per_token("tp=8") == 2 * 80 * 1 * 128 * 2);
  CHECK(per_token("tp=16") == 2 * 80 * 1 * 128 * 2);
  CHECK(per_token("pp=4,tp=2") == 2 * 20 * 4 * 128 * 2);
}

TEST_CASE("a latent cache is whole on every device, and has the model's own layers only (D21)") {
  const PublishedModel model = test::deepseek_v3();
  PlanOptions options;
  options.workload.context = 10'000;
  options.workload.block_tokens = 1;
  for (const char* mesh : {"tp=1", "tp=2", "ep=8"}) {
    const MemoryReport report = memory(model, mesh, options);
    for (const PlanDevice& device : report.devices) {
      CHECK(device.kv == 702'720'000);
      CHECK(device.kv_per_token == 61 * 576 * 2);
    }
  }
}

TEST_CASE("windows of layers, as each family says them") {
  const auto windows = [](const std::string& type, const std::string& more) {
    const PublishedModel model = test::llama_like({.model_type = type,
                                                   .layers = 6,
                                                   .hidden = 8,
                                                   .heads = 2,
                                                   .kv_heads = 1,
                                                   .head_dim = 4,
                                                   .mlp = 8,
                                                   .vocab = 16,
                                                   .more_config = more});
    const auto config = mapping::parse_config(model.config, "config.json");
    std::vector<i64> found;
    const PlannedModel planned = planned_model(&config, nullptr, applied_to(model, config, "tp=1"));
    REQUIRE(planned.bound);
    for (const auto& layer : model::attention_caches(*planned.bound)) found.push_back(layer.window);
    return found;
  };
  using Windows = std::vector<i64>;
  const std::string window = R"(, "sliding_window": 4)";
  CHECK(windows("llama", "") == Windows(6, 0));
  CHECK(windows("mistral", window) == Windows(6, 4));
  CHECK(windows("mistral", R"(, "sliding_window": null)") == Windows(6, 0));
  CHECK(windows("gemma2", window) == Windows{4, 0, 4, 0, 4, 0});
  CHECK(windows("gemma3_text", window) == Windows{4, 4, 4, 4, 4, 0});
  CHECK(windows("gemma3_text", window + R"(, "sliding_window_pattern": 3)") ==
        Windows{4, 4, 0, 4, 4, 0});
  CHECK(windows("qwen2", window + R"(, "use_sliding_window": false, "max_window_layers": 2)") ==
        Windows(6, 0));
  CHECK(windows("qwen2", window + R"(, "use_sliding_window": true, "max_window_layers": 2)") ==
        Windows{0, 0, 4, 4, 4, 4});
  CHECK(windows("gpt_oss", window + R"(, "layer_types": ["sliding_attention", "full_attention",
    "sliding_attention", "full_attention", "full_attention", "full_attention"])") ==
        Windows{4, 0, 4, 0, 0, 0});
}

TEST_CASE("attention to an encoder keeps its positions, once per sequence") {
  // Whisper: 2 decoder layers, 4 heads of 3, 1,500 positions of the encoder; T5: those of the
  // prompt
  PublishedModel whisper;
  whisper.config =
      R"({"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper",
    "d_model": 12, "decoder_layers": 2, "num_hidden_layers": 1, "encoder_layers": 1,
    "decoder_attention_heads": 4, "encoder_attention_heads": 4, "max_source_positions": 1500,
    "is_encoder_decoder": true})";
  for (const char* layer : {"0", "1"}) {
    for (const char* attention : {"self_attn", "encoder_attn"}) {
      whisper.tensors.push_back(
          {std::string("model.decoder.layers.") + layer + "." + attention + ".k_proj.weight",
           Dtype::kF16,
           {12, 12}});
    }
  }
  PlanOptions options;
  options.workload.context = 10;
  options.workload.block_tokens = 1;
  options.workload.batch = 3;
  const MemoryReport report = memory(whisper, "tp=2", options);
  for (const PlanDevice& device : report.devices) {
    CHECK(device.kv_per_token == 2 * 2 * 2 * 3 * 2);
    CHECK(device.cross_kv == 3 * 1500 * device.kv_per_token);
    CHECK(device.kv == 3 * (10 + 1500) * device.kv_per_token);
  }
  options.workload.context = 0;
  CHECK(memory(whisper, "tp=2", options).devices[0].kv == 0);
}

TEST_CASE("recurrences keep a state per sequence, and convolutions their positions before") {
  // One layer of 8 heads of 12 x 10 in 4 groups, a convolution of 4 taps.
  PublishedModel mamba;
  mamba.config =
      R"({"architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "dtype": "bfloat16",
    "hidden_size": 48, "expand": 2, "num_heads": 8, "head_dim": 12, "state_size": 10, "n_groups": 4,
    "conv_kernel": 4, "num_hidden_layers": 1, "vocab_size": 96, "use_bias": false,
    "tie_word_embeddings": false})";
  mamba.tensors = {{"backbone.embeddings.weight", Dtype::kBF16, {96, 48}},
                   {"backbone.layers.0.norm.weight", Dtype::kBF16, {48}},
                   {"backbone.layers.0.mixer.A_log", Dtype::kBF16, {8}},
                   {"backbone.layers.0.mixer.D", Dtype::kBF16, {8}},
                   {"backbone.layers.0.mixer.dt_bias", Dtype::kBF16, {8}},
                   {"backbone.layers.0.mixer.conv1d.weight", Dtype::kBF16, {176, 1, 4}},
                   {"backbone.layers.0.mixer.conv1d.bias", Dtype::kBF16, {176}},
                   {"backbone.layers.0.mixer.in_proj.weight", Dtype::kBF16, {280, 48}},
                   {"backbone.layers.0.mixer.norm.weight", Dtype::kBF16, {96}},
                   {"backbone.layers.0.mixer.out_proj.weight", Dtype::kBF16, {48, 96}},
                   {"backbone.norm_f.weight", Dtype::kBF16, {48}},
                   {"lm_head.weight", Dtype::kBF16, {96, 48}}};
  PlanOptions options;
  options.workload.context = 10;
  options.workload.batch = 3;
  std::vector<std::string> notes;
  const MemoryReport report = memory(mamba, "tp=2", options, &notes);
  const i64 states = 4 * 12 * 10 * 4;
  const i64 before = (48 + 2 * 2 * 10) * 3 * 2;
  for (const PlanDevice& device : report.devices) {
    CHECK(device.kv == 0);
    CHECK(device.states == 3 * (states + before));
    CHECK(device.total == device.weights + device.states + device.activations);
  }
  options.workload.context = 1000;
  CHECK(memory(mamba, "tp=2", options, &notes).devices[1].states == 3 * (states + before));
  // Missing tensors do not reduce the memory of the others.
  mamba.tensors.resize(10);
  CHECK(memory(mamba, "tp=2", options, &notes).devices[1].states == 3 * (states + before));
}

TEST_CASE("the first Mamba keeps a state for every feature, short convolutions alone no state") {
  PublishedModel mamba;
  mamba.config = R"({"architectures": ["MambaForCausalLM"], "model_type": "mamba",
    "dtype": "bfloat16", "hidden_size": 16, "intermediate_size": 32, "state_size": 6,
    "time_step_rank": 5, "conv_kernel": 4, "num_hidden_layers": 1, "vocab_size": 96})";
  const std::string mixer = "backbone.layers.0.mixer.";
  mamba.tensors = {{"backbone.embeddings.weight", Dtype::kBF16, {96, 16}},
                   {"backbone.layers.0.norm.weight", Dtype::kBF16, {16}},
                   {mixer + "A_log", Dtype::kBF16, {32, 6}},
                   {mixer + "D", Dtype::kBF16, {32}},
                   {mixer + "conv1d.weight", Dtype::kBF16, {32, 1, 4}},
                   {mixer + "in_proj.weight", Dtype::kBF16, {64, 16}},
                   {mixer + "x_proj.weight", Dtype::kBF16, {17, 32}},
                   {mixer + "dt_proj.weight", Dtype::kBF16, {32, 5}},
                   {mixer + "dt_proj.bias", Dtype::kBF16, {32}},
                   {mixer + "out_proj.weight", Dtype::kBF16, {16, 32}},
                   {"backbone.norm_f.weight", Dtype::kBF16, {16}}};
  PublishedModel lfm2;
  lfm2.config = R"({"architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2",
    "dtype": "bfloat16", "hidden_size": 16, "block_ff_dim": 30, "block_multiple_of": 8,
    "block_ffn_dim_multiplier": 1.0, "conv_L_cache": 3, "num_hidden_layers": 1,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96})";
  const std::string layer = "model.layers.0.";
  lfm2.tensors = {{"model.embed_tokens.weight", Dtype::kBF16, {96, 16}},
                  {layer + "operator_norm.weight", Dtype::kBF16, {16}},
                  {layer + "conv.in_proj.weight", Dtype::kBF16, {48, 16}},
                  {layer + "conv.conv.weight", Dtype::kBF16, {16, 1, 3}},
                  {layer + "conv.out_proj.weight", Dtype::kBF16, {16, 16}},
                  {layer + "ffn_norm.weight", Dtype::kBF16, {16}},
                  {layer + "feed_forward.w1.weight", Dtype::kBF16, {24, 16}},
                  {layer + "feed_forward.w3.weight", Dtype::kBF16, {24, 16}},
                  {layer + "feed_forward.w2.weight", Dtype::kBF16, {16, 24}},
                  {"model.embedding_norm.weight", Dtype::kBF16, {16}}};
  PlanOptions options;
  options.workload.context = 10;
  options.workload.batch = 3;
  std::vector<std::string> notes;  // a note that there is no cache
  const i64 state = 16 * 6 * 4, before = 16 * 3 * 2, two_before = 8 * 2 * 2;
  CHECK(memory(mamba, "tp=2", options, &notes).devices[1].states == 3 * (state + before));
  CHECK(memory(lfm2, "tp=2", options, &notes).devices[1].states == 3 * two_before);
}

TEST_CASE("states are those of all heads, whatever axis of a rate counts them") {
  PlanOptions options;
  options.workload.context = 10;
  // One layer of 3 heads of 10 x 10 with three convolutions of 3 taps, in F32.
  const PublishedModel kimi = golden_model("kimi_linear");
  CHECK(memory(kimi, "tp=1", options).devices[0].states == 3 * (10 * 10 + 3 * 10 * 2) * 4);
  CHECK(memory(kimi, "tp=3", options).devices[2].states == (10 * 10 + 3 * 10 * 2) * 4);
  // Two heads of keys of 6 for four of values of 10, convolutions of 4 taps.
  const PublishedModel olmo = golden_model("olmo_hybrid");
  CHECK(memory(olmo, "tp=2", options).devices[1].states == (2 * 6 * 10 + (6 + 6 + 20) * 3) * 4);
}

TEST_CASE("a model type without a graph is counted as the family of its preset, and that is told") {
  PublishedModel model = golden_model("kimi_linear");
  PlanOptions options;
  options.workload.context = 10;
  const i64 states = memory(model, "tp=1", options).devices[0].states;
  const std::string type = R"("model_type": "kimi_linear")";
  const size_t at = model.config.find(type);
  REQUIRE(at != std::string::npos);
  model.config.replace(at, type.size(), R"("model_type": "novel")");
  std::vector<std::string> told;
  CHECK(memory(model, "tp=1", options, &told).devices[0].states == states);
  REQUIRE(told.size() == 1);
  CHECK(told.front().find("counted as those of kimi_linear") != std::string::npos);
}

TEST_CASE("a layer that attends twice caches twice, a recurrent one beside it nothing") {
  CHECK(memory(golden_model("longcat_flash"), "tp=2").devices[1].kv_per_token ==
        2 * 2 * (20 + 8) * 4);
  CHECK(memory(golden_model("bailing_hybrid"), "tp=2").devices[1].kv_per_token == (20 + 8) * 4);
  // Its second layer has no keys of an index.
  CHECK(memory(golden_model("hy_v4"), "tp=2").devices[1].kv_per_token == (2 * (20 + 8) + 16) * 4);
}

TEST_CASE("a decoder that says it attends to an encoder, and has no projection for that, is told") {
  const PublishedModel model = test::llama_like({.model_type = "llama",
                                                 .layers = 2,
                                                 .hidden = 8,
                                                 .heads = 2,
                                                 .kv_heads = 1,
                                                 .head_dim = 4,
                                                 .mlp = 8,
                                                 .vocab = 16,
                                                 .more_config = R"(, "is_encoder_decoder": true)"});
  std::vector<std::string> told;
  CHECK(memory(model, "tp=1", {}, &told).devices[0].kv_per_token == 2 * 2 * 4 * 2);
  REQUIRE(told.size() == 1);
  CHECK(told.front().find("attention to an encoder") != std::string::npos);
}

TEST_CASE("heads that a fused projection has in groups are counted where their group is") {
  // CodeGen's rows are q, v, k of each of four groups of heads: two devices have half of them each.
  const i64 all = memory(golden_model("codegen"), "tp=1").devices[0].kv_per_token;
  for (const PlanDevice& device : memory(golden_model("codegen"), "tp=2").devices)
    CHECK(2 * device.kv_per_token == all);
}

TEST_CASE("a class of one's own is asked before the built-in ones, and may add to one") {
  PlanOptions options;
  options.classes = {{"first", "model.layers.0.**"}, {"mlp", "**.k_proj.weight"}};
  const MemoryReport report = memory(test::llama_3_8b(), "tp=1", options);
  CHECK(report.classes.front() == "first");
  CHECK(report.classes.back() == "other");
  const i64 layer = i64{2} * (4096 * (4096 + 1024 + 1024 + 4096 + 3 * 14336) + 2 * 4096);
  CHECK(of_class(report, 0, "first") == layer);
  CHECK(of_class(report, 0, "mlp") == i64{31} * 2 * 4096 * (3 * 14336 + 1024));
  options.workload.context = 1;
  const i64 named = memory(test::llama_3_8b(), "tp=1", options).devices[0].activations;
  options.classes.clear();
  CHECK(named == memory(test::llama_3_8b(), "tp=1", options).devices[0].activations);
  for (const OwnClass& refused : {OwnClass{"", "**"}, OwnClass{"other", "**"}}) {
    options.classes = {refused};
    CHECK_ERROR(kUsage, memory(test::llama_3_8b(), "tp=1", options));
  }
  options.classes = {{"x", "{a"}};
  CHECK_ERROR(kMappingSchema, memory(test::llama_3_8b(), "tp=1", options));
}

/// Activations of one token, of a model without a prompt.
i64 activations(const PublishedModel& model) {
  PlanOptions options;
  options.workload.context = 1;
  std::vector<std::string> told;
  return memory(model, "tp=1", options, &told).devices[0].activations;
}

TEST_CASE("live widths are those of one layer, with the queries of a latent attention") {
  // The queries and keys and values that are made of latents are wider than what the old rule saw,
  // a matrix with one side as wide as the residual stream: DeepSeek V3's q_b_proj and kv_b_proj.
  const i64 attention = 1536 + 128 * 192 + 576 + 128 * 256 + 128 * 128;
  // 8 experts of a token, a shared one, and the router; dense layers are narrower together.
  const i64 mlp = std::max<i64>(3 * 18432, (8 + 1) * 3 * 2048 + 256);
  CHECK(activations(test::deepseek_v3()) ==
        (2 * 7168 + std::max(attention, mlp)) * 2 + 129'280 * 4);
}

TEST_CASE("logits are live where the head's matrix is that of the words, too") {
  // Qwen 2.5 0.5B ties them: 14 heads of 64, 2 of keys, an MLP of 4,864, 151,936 words.
  CHECK(activations(test::qwen_2_5_half_billion()) == (2 * 896 + 3 * 4864) * 2 + 151'936 * 4);
}

TEST_CASE("the total of a device is the sum of its parts, and the budget decides") {
  PlanOptions options;
  options.workload.batch = 4;
  options.workload.context = 1000;
  options.device.bytes = 80'000'000'000;
  options.device.fraction = 0.9;
  options.device.overhead_bytes = 1'000'000'000;
  const MemoryReport report = memory(test::llama_3_70b(), "tp=8", options);
  CHECK(report.budget == 72'000'000'000);
  for (const PlanDevice& device : report.devices) {
    CHECK(std::accumulate(device.by_class.begin(), device.by_class.end(), i64{0}) ==
          device.weights);
    CHECK(device.kv == 4 * 1008 * device.kv_per_token);  // whole blocks of 16
    CHECK(device.total == device.weights + device.kv + device.activations + 1'000'000'000);
    CHECK(device.fits == true);
    const i64 room = report.budget - (device.total - device.kv);
    CHECK(*device.kv_capacity_tokens == room / (16 * device.kv_per_token) * 16);
  }
  options.device.bytes = 20'000'000'000;
  CHECK(memory(test::llama_3_70b(), "tp=8", options).fits == false);
}

TEST_CASE("a type of cache that is not known is refused") {
  PlanOptions options;
  options.workload.kv_dtype = "bf61";
  CHECK_ERROR(kUsage, memory(test::llama_3_8b(), "tp=1", options));
  options.workload.kv_dtype = "fp8";
  CHECK(memory(test::llama_3_8b(), "tp=1", options).devices[0].kv_per_token == 2 * 32 * 8 * 128);
}

}  // namespace
}  // namespace shardtool::api
