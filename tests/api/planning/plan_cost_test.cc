#include "lib/api/planning/plan_cost.h"

#include <doctest/doctest.h>

#include <fstream>

#include "lib/api/catalogue/profiles.h"
#include "lib/api/plan.h"
#include "lib/api/planning/planned_model.h"
#include "lib/api/planning/unpacked_tensors.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/quantization.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/graph/graph_list.h"
#include "tests/api/planning/stored_model.h"
#include "tests/mapping/models.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace shardtool;
using testing::error_of;

namespace {

struct Applied {
  mapping::ModelConfig config;
  api::AppliedMapping mapping;
};

Applied applied(const mapping::TinyModel& model, const std::string& preset,
                const std::string& mesh) {
  auto config = mapping::parse_config(model.config, "config.json");
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh(mesh);
  auto loaded = mapping::with_quantization(mapping::load_preset(preset), &config);
  auto resolution = resolve(loaded, model.tensors, &config, options);
  return {std::move(config), {std::move(loaded), std::move(resolution), model.tensors}};
}

/// The model with the linear weights of its layers as ModelOpt's NVFP4.
mapping::TinyModel nvfp4(mapping::TinyModel model) {
  std::vector<TensorSpec> packed;
  for (const TensorSpec& tensor : model.tensors) {
    if (tensor.name.find("_proj.weight") == std::string::npos) {
      packed.push_back(tensor);
      continue;
    }
    packed.push_back({tensor.name, Dtype::kU8, {tensor.shape[0], tensor.shape[1] / 2}});
    packed.push_back(
        {tensor.name + "_scale", Dtype::kF8E4M3, {tensor.shape[0], tensor.shape[1] / 16}});
    packed.push_back({tensor.name + "_scale_2", Dtype::kF32, {}});
  }
  model.tensors = std::move(packed);
  model.config.insert(
      1, R"("quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}, )");
  return model;
}

}  // namespace

TEST_CASE("a forward pass has a price with and without a profile") {
  const auto model = applied(mapping::tiny_llama(), "llama", "tp=2");
  const auto report = api::forward_cost(&model.config, nullptr, model.mapping, {}, "", nullptr);
  CHECK(report.family == "llama");
  CHECK(report.why_not.empty());
  REQUIRE(report.price);
  CHECK_FALSE(report.price->decode.roofline);
  REQUIRE(report.price->decode.comm.size() == 2);
  CHECK(report.price->decode.comm[1].count == 5);  // two layers, and the embedding
  CHECK(report.price->decode.comm[1].collective.payload_bytes == 64 * 2);
  const auto profile = api::load_profile("h100-sxm");
  const auto timed = api::forward_cost(&model.config, nullptr, model.mapping, {}, "", &profile);
  CHECK(timed.profile == "h100-sxm");
  CHECK(timed.price->decode.roofline->comm_us > 0);
}

TEST_CASE("replicas along a mesh axis that cuts nothing share the sequences") {
  const auto profile = api::load_profile("h100-sxm");
  const auto step_of = [&](const char* mesh, i64 batch) {
    const auto model = applied(mapping::tiny_llama(), "llama", mesh);
    model::ReplicaWorkload workload;
    workload.batch = batch;
    const auto report =
        api::forward_cost(&model.config, nullptr, model.mapping, workload, "", &profile);
    CHECK(report.workload.batch == batch);
    CHECK(report.stage_step_us == report.price->decode.roofline->step_us);
    return report.price->decode.roofline->step_us;
  };
  CHECK(step_of("dp=2,tp=2", 7) == step_of("tp=2", 4));
  CHECK(step_of("dp=2,tp=2", 7) < step_of("tp=2", 7));
  CHECK(step_of("dp=8", 8) == step_of("tp=1", 1));
}

TEST_CASE("a pipeline's sequences are divided among its stages") {
  const auto profile = api::load_profile("h100-sxm");
  const auto model = applied(mapping::tiny_llama(), "llama", "pp=2");
  const auto cost_of = [&](i64 batch) {
    model::ReplicaWorkload workload;
    workload.batch = batch;
    return api::forward_cost(&model.config, nullptr, model.mapping, workload, "", &profile);
  };
  CHECK(cost_of(9).stage_step_us == cost_of(5).price->decode.roofline->step_us);
  CHECK(cost_of(9).stage_step_us < cost_of(9).price->decode.roofline->step_us);
}

TEST_CASE("without a config, a graph or the graph's tensors there is a reason and no number") {
  auto model = applied(mapping::tiny_llama(), "llama", "tp=2");
  const auto reason = [&](const mapping::ModelConfig* config) {
    const auto report = api::forward_cost(config, nullptr, model.mapping, {}, "", nullptr);
    CHECK_FALSE(report.price);
    return report.why_not;
  };
  CHECK(reason(nullptr) == "there is no config.json");
  const auto unheard = mapping::parse_config(R"({"model_type": "unheard"})", "config.json");
  CHECK(reason(&unheard) == "no graph is built in for the model type 'unheard'");
  model.mapping.specs.front().name = "model.embed_tokens.qweight";
  CHECK(reason(&model.config) ==
        "the graph of llama reads a tensor that the checkpoint lacks: "
        "model.embed_tokens.weight");
}

TEST_CASE("a model whose norms have no weights has a price") {
  mapping::TinyModel olmo = mapping::tiny_llama();
  std::erase_if(olmo.tensors, [](const TensorSpec& tensor) {
    return tensor.name.find("norm") != std::string::npos;
  });
  olmo.config.replace(olmo.config.find("\"llama\""), 7, "\"olmo\"");
  const auto model = applied(olmo, "olmo", "tp=2");
  const auto report = api::forward_cost(&model.config, nullptr, model.mapping, {}, "", nullptr);
  CHECK(report.family == "olmo");
  CHECK(report.price);
}

TEST_CASE("a workload that cannot be is an error, not a reason") {
  const auto model = applied(mapping::tiny_llama(), "llama", "tp=2");
  CHECK_ERROR(
      kUsage,
      api::forward_cost(&model.config, nullptr, model.mapping, {.batch = 0}, "", nullptr).family);
}

TEST_CASE("the cached share of a prompt is not computed again") {
  const api::StoredModel model(mapping::tiny_llama());
  const auto plan = [&](double share) {
    api::PlanOptions options;
    options.sources = {model.path()};
    options.mapping.mesh = mesh::parse_mesh("tp=2");
    options.hardware = api::load_profile("h100-sxm");
    options.workload.prompt_len = 64;
    options.workload.context = 96;
    options.workload.prefix_hit = share;
    return api::make_plan(options);
  };
  const api::PlanReport none = plan(0), half = plan(0.5);
  CHECK(half.cost->workload.cached == 32);
  CHECK(half.cost->price->prefill.roofline->step_us < none.cost->price->prefill.roofline->step_us);
  CHECK(half.cost->price->decode.roofline->step_us == none.cost->price->decode.roofline->step_us);
  CHECK_ERROR(kUsage, plan(1));
}

TEST_CASE("profiles come from a name or a file") {
  test::TempFolder folder;
  const std::string path = folder / "mine.json";
  std::ofstream(path) << api::profile_text("a100-80-sxm");
  CHECK(api::load_profile(path).name == "a100-80-sxm");
  std::ofstream(path, std::ios::app) << "x";
  const auto error = error_of([&] { return api::load_profile(path).name; });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kHardwareProfile);
  CHECK(error->place()->file == "mine.json");
  CHECK_ERROR(kUsage, api::load_profile("h1000").name);
  CHECK(api::list_profiles().size() == 17);
}

TEST_CASE("a cache has the type of the quantisation unless another is asked for") {
  const auto bits = [](const std::string& quantisation, const std::string& asked) {
    const auto config = mapping::parse_config(
        R"({"torch_dtype": "bfloat16", "quantization_config": )" + quantisation + "}",
        "config.json");
    return api::cache_bits(&config, nullptr, {}, asked);
  };
  CHECK(bits("{}", "") == 16);
  CHECK(bits(R"({"kv_cache_scheme": null, "kv_cache_quant_algo": null})", "") == 16);
  CHECK(bits(R"({"kv_cache_scheme": {"num_bits": 8, "type": "float"}})", "") == 8);
  CHECK(bits(R"({"kv_cache_quant_algo": "FP8"})", "") == 8);
  CHECK(bits(R"({"kv_cache_quant_algo": "NVFP4"})", "") == 4);
  CHECK(bits(R"({"kv_cache_quant_algo": "FP8"})", "bf16") == 16);
  CHECK_ERROR(kConfig, bits(R"({"kv_cache_quant_algo": "FP7"})", ""));
  CHECK(api::cache_bits(nullptr, nullptr, {}, "") == 16);
}

TEST_CASE("caches and activations have the weights' type where config.json names none") {
  mapping::TinyModel model = mapping::tiny_llama();
  REQUIRE(model.config.find("dtype") == std::string::npos);
  const auto kept = [&](Dtype dtype) {
    for (TensorSpec& tensor : model.tensors) tensor.dtype = dtype;
    const api::StoredModel stored(model);
    api::PlanOptions options;
    options.sources = {stored.path()};
    options.mapping.mesh = mesh::Mesh({{"tp", 2}});
    options.workload.context = 16;
    options.workload.prompt_len = 5;
    const api::PlanDevice device = api::make_plan(options).memory.devices.front();
    return std::pair(device.kv, device.activations);
  };
  const auto narrow = kept(Dtype::kBF16), wide = kept(Dtype::kF32);
  CHECK(wide.first == 2 * narrow.first);
  CHECK(wide.second > 3 * narrow.second / 2);
  CHECK(kept(Dtype::kF16) == narrow);
}

TEST_CASE("NVFP4 is multiplied in FP4, MXFP4 with values in FP8, and integers in BF16") {
  for (const model::PackedFormat& format : model::packed_formats()) {
    CAPTURE(format.tag);
    model::PackedWeight weight;
    weight.format = &format;
    weight.scales = 1;
    const std::vector<TensorSpec> specs{
        {"codes", Dtype::kU8, {1}}, {"scales", Dtype::kF16, {1}}, {"weight", Dtype::kF32, {1}}};
    const plan::Arithmetic expected = format.name == "NVFP4"   ? plan::Arithmetic::kFp4
                                      : format.name == "MXFP4" ? plan::Arithmetic::kFp4WithFp8
                                                               : plan::Arithmetic::kBf16;
    CHECK(api::packed_reads({weight}, specs).at(2).arithmetic == expected);
  }
}

TEST_CASE("weights packed in four bits have a price, with the share of their scales") {
  const mapping::TinyModel plain = mapping::tiny_llama();
  const auto layers_bytes = [](const mapping::TinyModel& model) {
    const auto of = applied(model, "llama", "tp=2");
    const auto report = api::forward_cost(&of.config, nullptr, of.mapping, {}, "", nullptr);
    CHECK(report.why_not.empty());
    REQUIRE(report.price);
    return report.price->decode.amounts;
  };
  const auto stored = layers_bytes(plain);
  const auto packed = layers_bytes(nvfp4(plain));
  // Linear weights of the layers take 4.5 of 16 bits; embedding, head and norms stay.
  const double linear = 2.0 * (2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 96) / 2;  // elements, tp=2
  CHECK(stored.weight_bytes - packed.weight_bytes == linear * (16 - 4.5) / 8);
  CHECK(packed.narrow_bytes == linear * 4.5 / 8);
  CHECK(stored.narrow_bytes == 0);
  CHECK(packed.flops[static_cast<size_t>(plan::Arithmetic::kFp4)] == 2 * linear);
  CHECK(packed.narrow_flops[static_cast<size_t>(plan::Arithmetic::kFp4)] == 2 * linear);
}

TEST_CASE(
    "activations have the dtype of norms, and without norms of the first floats to compute in") {
  const mapping::TinyModel model = mapping::tiny_llama();
  const auto config = mapping::parse_config(model.config, "config.json");
  std::vector<TensorSpec> specs = model.tensors;
  for (TensorSpec& spec : specs) {
    const bool is_norm = spec.name.find("norm") != std::string::npos;
    spec.dtype = is_norm ? Dtype::kF16 : Dtype::kF32;
  }
  std::string why_not;
  model::Model bound =
      model::bind_model(model::find_graph(config, why_not), config, std::span(specs));
  CHECK(api::dtype_of_norms(bound, specs) == Dtype::kF16);
  for (model::Layer& layer : bound.layers) {
    std::erase_if(layer.ops, [](const model::BoundOp& op) {
      return std::holds_alternative<ops::Norm>(op.op->kind);
    });
  }
  CHECK(api::dtype_of_norms(bound, specs) == Dtype::kF32);
  for (TensorSpec& spec : specs) spec.dtype = Dtype::kF8E4M3;
  CHECK(api::dtype_of_norms(bound, specs) == Dtype::kBF16);
}
