// Families of quantised tensors: every member follows the cut of its weight.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "lib/mapping/presets.h"
#include "lib/mapping/quantization.h"
#include "tests/mapping/quantised_tensors.h"

namespace shardtool::mapping {
namespace {

TEST_CASE("GPTQ along the output: words, scales and zeros by rows of the weight, g_idx whole") {
  const auto tensors = gptq("up", 1024, 512, 4);
  const auto result = resolved(tensors, kGptq, "tp=2");
  CHECK(held_of(result, tensors, "up.qweight", 1) == Held{"[0, 512)", "[512, 1024)"});
  CHECK(held_of(result, tensors, "up.qweight", 0)[1] == "[0, 64)");
  CHECK(held_of(result, tensors, "up.qzeros", 1) == Held{"[0, 64)", "[64, 128)"});
  CHECK(held_of(result, tensors, "up.scales", 1) == Held{"[0, 512)", "[512, 1024)"});
  CHECK(held_of(result, tensors, "up.g_idx", 0)[1] == "[0, 512)");
  CHECK(result.tensors.size() == tensors.size());
}

TEST_CASE("GPTQ along the input: words of 8 inputs, groups of 128, and g_idx with them") {
  const auto tensors = gptq("down", 256, 1024, 8);
  const auto result = resolved(tensors, kGptq, "tp=4");
  CHECK(held_of(result, tensors, "down.qweight", 0)[1] == "[32, 64)");
  CHECK(held_of(result, tensors, "down.qzeros", 0)[1] == "[2, 4)");
  CHECK(held_of(result, tensors, "down.scales", 0)[3] == "[6, 8)");
  CHECK(held_of(result, tensors, "down.g_idx", 0)[1] == "[256, 512)");
}

TEST_CASE("GPTQ with activation order keeps scales and zeros whole along the input") {
  const auto tensors = gptq("down", 256, 1024, 8);
  const auto result = resolved(tensors, kActOrder, "tp=16");
  CHECK(held_of(result, tensors, "down.qweight", 0)[1] == "[8, 16)");
  CHECK(held_of(result, tensors, "down.scales", 0)[1] == "[0, 8)");
  CHECK(held_of(result, tensors, "down.qzeros", 0)[15] == "[0, 8)");
  CHECK(held_of(result, tensors, "down.g_idx", 0)[1] == "[64, 128)");
  // Without it the same cut is inside of groups.
  CHECK_ERROR(kBlockStraddle, resolved(tensors, kGptq, "tp=16"));
}

TEST_CASE("one group for all inputs is written as a group size of -1") {
  const auto tensors = gptq("down", 256, 1024, 1);
  const std::string whole = R"({"quant_method": "gptq", "bits": 4, "group_size": -1})";
  CHECK(held_of(resolved(tensors, whole, "tp=1"), tensors, "down.scales", 0)[0] == "[0, 1)");
  CHECK_ERROR(kBlockStraddle, resolved(tensors, whole, "tp=2"));
  const auto columns = gptq("up", 1024, 256, 1);
  CHECK(held_of(resolved(columns, whole, "tp=2"), columns, "up.scales", 1)[1] == "[512, 1024)");
}

TEST_CASE("AWQ moves whole words of 8 outputs, heads are cut by heads and KV heads repeat") {
  auto tensors = awq("up", 1024, 256, 2);
  auto result = resolved(tensors, kAwq, "tp=4");
  CHECK(held_of(result, tensors, "up.qweight", 1)[3] == "[96, 128)");
  CHECK(held_of(result, tensors, "up.qzeros", 1)[3] == "[96, 128)");
  CHECK(held_of(result, tensors, "up.scales", 1)[3] == "[768, 1024)");
  tensors = awq("k", 128, 256, 2);
  result = resolved(tensors, kAwq, "tp=4");
  CHECK(held_of(result, tensors, "k.qweight", 1) == Held{"[0, 8)", "[0, 8)", "[8, 16)", "[8, 16)"});
  tensors = awq("up", 24, 256, 2);
  CHECK_ERROR(kBlockStraddle, resolved(tensors, kAwq, "tp=2"));  // 12 outputs: a word and a half
}

TEST_CASE("compressed-tensors: packed weights, zeros packed along the output, one scale a group") {
  auto tensors = packed("up", 1024, 512, 4);
  auto result = resolved(tensors, kPack, "tp=4");
  CHECK(held_of(result, tensors, "up.weight_packed", 0)[1] == "[256, 512)");
  CHECK(held_of(result, tensors, "up.weight_scale", 0)[1] == "[256, 512)");
  CHECK(held_of(result, tensors, "up.weight_zero_point", 0)[1] == "[32, 64)");
  tensors = packed("down", 1024, 512, 4);
  result = resolved(tensors, kPack, "tp=4");
  CHECK(held_of(result, tensors, "down.weight_packed", 1)[1] == "[16, 32)");
  CHECK(held_of(result, tensors, "down.weight_scale", 1)[1] == "[1, 2)");
  CHECK(held_of(result, tensors, "down.weight_zero_point", 1)[1] == "[1, 2)");
}

TEST_CASE("compressed-tensors with activation order keeps scales and zeros whole along the input") {
  std::string config = kPack;
  config.replace(config.find("\"group_size\""), 0, R"("actorder": "group", )");
  auto tensors = packed("down", 1024, 512, 4);
  tensors.push_back(spec("down.weight_g_idx", {512}, Dtype::kI32));
  const auto result = resolved(tensors, config, "tp=4");
  CHECK(held_of(result, tensors, "down.weight_packed", 1)[1] == "[16, 32)");
  CHECK(held_of(result, tensors, "down.weight_g_idx", 0)[1] == "[128, 256)");
  CHECK(held_of(result, tensors, "down.weight_scale", 1)[1] == "[0, 4)");
  CHECK(held_of(result, tensors, "down.weight_zero_point", 1)[1] == "[0, 4)");
}

TEST_CASE("one scale for the tensor, for a row or for a block: the shape says which") {
  const auto scale = [](const Shape& shape) -> std::vector<TensorSpec> {
    return {spec("up.weight", {512, 256}, Dtype::kF8E4M3),
            spec("up.weight_scale", shape, Dtype::kF32)};
  };
  const auto held_by_1 = [&](const Shape& shape) {
    const auto tensors = scale(shape);
    return held_of(resolved(tensors, kFloat, "tp=2"), tensors, "up.weight_scale", 0)[1];
  };
  CHECK(held_by_1({1}) == "[0, 1)");
  CHECK(held_by_1({512}) == "[256, 512)");
  CHECK(held_by_1({512, 1}) == "[256, 512)");
  const auto scalar = scale({});
  CHECK_FALSE(at(resolved(scalar, kFloat, "tp=2"), scalar, "up.weight_scale").layout->is_sharded());
  const auto wrong = scale({7});
  const auto e = error_of([&] { return resolved(wrong, kFloat, "tp=2"); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kShapeMismatch);
  CHECK(e->tensor_name() == "up.weight_scale");
}

TEST_CASE("NVFP4 packs two along the input, in a tensor of its own or in the weight itself") {
  const std::string other = R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})";
  std::vector<TensorSpec> tensors = {spec("down.weight", {64, 128}, Dtype::kU8),
                                     spec("down.weight_scale", {64, 16}, Dtype::kF8E4M3),
                                     spec("down.weight_scale_2", {}, Dtype::kF32),
                                     spec("norm.weight", {256}, Dtype::kBF16)};
  auto result = resolved(tensors, other, "tp=4");
  CHECK(result.tensors.size() == 4);
  CHECK(held_of(result, tensors, "down.weight", 1)[1] == "[32, 64)");
  CHECK(held_of(result, tensors, "down.weight_scale", 1)[1] == "[4, 8)");
  CHECK_ERROR(kBlockStraddle, resolved(tensors, other, "tp=32"));
  const std::string own =
      R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"})";
  tensors = {spec("up.weight_packed", {64, 128}, Dtype::kU8),
             spec("up.weight_scale", {64, 16}, Dtype::kF8E4M3),
             spec("up.weight_global_scale", {1}, Dtype::kF32)};
  result = resolved(tensors, own, "tp=4");
  CHECK(held_of(result, tensors, "up.weight_packed", 0)[1] == "[16, 32)");
  CHECK(held_of(result, tensors, "up.weight_scale", 0)[1] == "[16, 32)");
}

TEST_CASE("MXFP4 experts are the transposed BF16 experts in blocks of 32 inputs") {
  const std::string mxfp4 = R"({"quant_method": "mxfp4"})";
  const std::vector<TensorSpec> tensors = {
      spec("mlp.experts.gate_up_proj_blocks", {4, 256, 3, 16}, Dtype::kU8),
      spec("mlp.experts.gate_up_proj_scales", {4, 256, 3}, Dtype::kU8),
      spec("mlp.experts.down_proj_blocks", {4, 96, 4, 16}, Dtype::kU8),
      spec("mlp.experts.down_proj_scales", {4, 96, 4}, Dtype::kU8)};
  const auto result = resolved(tensors, mxfp4, "ep=2,tp=2");
  CHECK(held_of(result, tensors, "mlp.experts.gate_up_proj_blocks", 0)[2] == "[2, 4)");
  CHECK(held_of(result, tensors, "mlp.experts.gate_up_proj_blocks", 1)[1] == "[128, 256)");
  CHECK(held_of(result, tensors, "mlp.experts.gate_up_proj_scales", 1)[1] == "[128, 256)");
  CHECK(held_of(result, tensors, "mlp.experts.down_proj_blocks", 2)[1] == "[2, 4)");
  CHECK(held_of(result, tensors, "mlp.experts.down_proj_scales", 2)[3] == "[2, 4)");
  CHECK_ERROR(kBlockStraddle, resolved(tensors, mxfp4, "tp=8"));
}

TEST_CASE("LoRA: along the output B is cut and A whole, along the input A is cut and B whole") {
  const Mapping mapping = [] {
    auto texts = model("tp=4").texts();
    texts.push_back({"preset:lora", std::string(preset_text("lora"))});
    return Mapping(std::move(texts));
  }();
  const std::string base = "base_model.model.model.layers.0.";
  const std::vector<TensorSpec> tensors = {
      spec(base + "up.lora_A.weight", {16, 64}),    spec(base + "up.lora_B.weight", {256, 16}),
      spec(base + "down.lora_A.weight", {16, 256}), spec(base + "down.lora_B.weight", {64, 16}),
      spec(base + "k.lora_A.weight", {16, 64}),     spec(base + "k.lora_B.weight", {128, 16})};
  const auto result = resolve(mapping, tensors, nullptr, over("tp=4"));
  CHECK_FALSE(at(result, tensors, base + "up.lora_A.weight").layout->is_sharded());
  CHECK(held_of(result, tensors, base + "up.lora_B.weight", 0)[1] == "[64, 128)");
  CHECK(held_of(result, tensors, base + "down.lora_A.weight", 1)[1] == "[64, 128)");
  CHECK_FALSE(at(result, tensors, base + "down.lora_B.weight").layout->is_sharded());
  CHECK(held_of(result, tensors, base + "k.lora_B.weight", 0) ==
        Held{"[0, 64)", "[0, 64)", "[64, 128)", "[64, 128)"});
}

TEST_CASE("what config.json says about the storage is one tag") {
  const auto tag = [](const std::string& quantization) {
    return quantization_tag(config_of(R"({"quantization_config": )" + quantization + "}"));
  };
  CHECK(tag(kGptq) == "gptq");
  CHECK(tag(kActOrder) == "gptq/desc_act");
  CHECK(tag(kAwq) == "awq/gemm");
  CHECK(tag(R"({"quant_method": "awq", "version": "gemv"})") == "awq/gemv");
  CHECK(tag(kFp8Blocks) == "fp8/block");
  CHECK(tag(R"({"quant_method": "fp8"})") == "fp8/tensor");
  CHECK(tag(kPack) == "compressed-tensors/pack-quantized");
  const auto pack_in_order = [&](const std::string& order) {
    return tag(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
      "config_groups": {"group_0": {"weights": {"actorder": )" +
               order + "}}}}");
  };
  CHECK(pack_in_order(R"("group")") == "compressed-tensors/pack-quantized/act_order");
  CHECK(pack_in_order(R"("dynamic")") == "compressed-tensors/pack-quantized/act_order");
  CHECK(pack_in_order(R"("GROUP")") == "compressed-tensors/pack-quantized/act_order");
  CHECK(pack_in_order(R"("weight")") == "compressed-tensors/pack-quantized");
  CHECK(pack_in_order("null") == "compressed-tensors/pack-quantized");
  const auto two_groups = [&](const std::string& first, const std::string& second) {
    return tag(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
      "config_groups": {"group_0": {"weights": {"actorder": )" +
               first + R"(}}, "group_1": {"weights": {"actorder": )" + second + "}}}}");
  };
  CHECK(two_groups("null", "null") == "compressed-tensors/pack-quantized");
  CHECK(two_groups(R"("group")", R"("group")") == "compressed-tensors/pack-quantized/act_order");
  CHECK(two_groups("null", R"("group")") == "compressed-tensors/pack-quantized/some_act_order");
  CHECK(two_groups(R"("group")", "null") == "compressed-tensors/pack-quantized/some_act_order");
  CHECK(tag(R"({"quant_method": "modelopt", "quant_algo": "FP8"})") == "modelopt/FP8");
  CHECK(tag(R"({"quant_method": "bitsandbytes", "load_in_8bit": true})") == "bitsandbytes/8bit");
  CHECK(tag(R"({"quant_method": "hqq"})") == "hqq");
  CHECK(tag("{}") == std::nullopt);
  CHECK(quantization_tag(config_of("{}")) == std::nullopt);
}

TEST_CASE("a storage that no family knows is refused, unless the mapping says that it knows it") {
  const std::vector<TensorSpec> tensors = {spec("up.weight", {8, 8}, Dtype::kI8)};
  const std::string eetq = R"({"quant_method": "eetq"})";
  CHECK_ERROR(kUnsupported, resolved(tensors, eetq, "tp=2"));
  CHECK_ERROR(kUnsupported, resolved(tensors, R"({"quant_method": "bitsandbytes"})", "tp=2"));
  CHECK(resolved(tensors, eetq, "tp=2", R"(, "quantization": ["eetq"])").tensors.size() == 1);
}

TEST_CASE("members follow their weight whatever rules match them, one's own family replaces ours") {
  const auto tensors = gptq("up", 1024, 512, 4);
  const std::string everything = R"(, "overrides": [{"match": "**.g_idx", "strategy": "rowwise"}])";
  const auto result = resolved(tensors, kGptq, "tp=2", everything);
  CHECK(at(result, tensors, "up.g_idx").by->rule == "preset:gptq#companions/3");
  CHECK(at(result, tensors, "up.qweight").by->rule == "preset:gptq#companions/0");
  const std::vector<TensorSpec> only = {spec("up.g_idx", {512}, Dtype::kI32)};
  const auto own = resolved(only, kGptq, "tp=2", everything + R"(, "quantization": ["gptq"])");
  CHECK(held_of(own, only, "up.g_idx", 0)[1] == "[256, 512)");
}

TEST_CASE("a scale without its weight, and parts that contradict each other, are named") {
  const std::vector<TensorSpec> orphan = {spec("up.weight_scale_inv", {4, 4}, Dtype::kF32)};
  CHECK_ERROR(kNoRule, resolved(orphan, kFp8Blocks, "tp=2"));
  const std::vector<TensorSpec> scales = {spec("up.scales", {4, 1024}, Dtype::kF16)};
  CHECK_ERROR(kNoRule, resolved(scales, kGptq, "tp=2"));
  auto tensors = gptq("up", 1024, 512, 4);
  tensors[2].shape = {5, 1024};
  const auto e = error_of([&] { return resolved(tensors, kGptq, "tp=2"); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kShapeMismatch);
  CHECK(e->tensor_name() == "up.scales");
}

TEST_CASE("every family is described and says what it is for, no tag has two families") {
  std::map<std::string, std::string> owner;
  for (const Preset& family : quantized_families()) {
    CAPTURE(family.name);
    CHECK_FALSE(family.description.empty());
    for (const std::string& tag : family.quantization)
      CHECK(owner.emplace(tag, family.name).second);
  }
}

}  // namespace
}  // namespace shardtool::mapping
