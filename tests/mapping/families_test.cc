// Families of quantised tensors: every member follows the cut of its weight.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "lib/mapping/presets.h"
#include "lib/mapping/quantization.h"
#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

/// up is cut along its output, down along its input; heads of 64 with 2 KV groups of 4.
const std::string kModel = R"({"version": 1, "unused_rule": "ignore",
  "axes": {"mlp": "tp", "heads": {"mesh": "tp", "size": 8, "groups": "kv"}, "kv": {"mesh": "tp", "size": 2, "small": "replicate"},
           "experts": {"mesh": EXPERTS, "size": 4}},
  "rules": [{"match": "**up.weight", "dims": ["mlp", null]}, {"match": "**down.weight", "dims": [null, "mlp"]},
            {"match": "**q.weight", "dims": ["heads*64", null]}, {"match": "**k.weight", "dims": ["kv*64", null]},
            {"match": "**o.weight", "dims": [null, "heads*64"]},
            {"match": "**norm.weight", "dims": [null]},
            {"match": "**experts.gate_up_proj", "dims": ["experts", null, "mlp*2"]},
            {"match": "**experts.down_proj", "dims": ["experts", "mlp", null]}]MORE})";

Mapping model(std::string_view mesh, const std::string& more = "") {
  std::string text = kModel;
  text.replace(text.find("MORE"), 4, more);
  text.replace(text.find("EXPERTS"), 7, mesh.starts_with("ep=") ? "\"ep\"" : "null");
  return mapping_of(text);
}

Resolution resolved(const std::vector<TensorSpec>& tensors, const std::string& quantization,
                    std::string_view mesh, const std::string& more = "") {
  const ModelConfig config = config_of(R"({"quantization_config": )" + quantization + "}");
  return resolve(with_quantization(model(mesh, more), &config), tensors, &config, over(mesh));
}

const std::string kGptq = R"({"quant_method": "gptq", "bits": 4, "group_size": 128})";
const std::string kActOrder =
    R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true})";
const std::string kAwq = R"({"quant_method": "awq", "bits": 4, "group_size": 128})";
const std::string kFp8Blocks = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
const std::string kPack = R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
  "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 128}}}})";
const std::string kFloat = R"({"quant_method": "compressed-tensors", "format": "float-quantized",
  "config_groups": {"group_0": {"weights": {"num_bits": 8}}}})";

/// Stored tensors of a weight [n, k] in each family.
std::vector<TensorSpec> gptq(const std::string& module, i64 n, i64 k, i64 groups) {
  return {spec(module + ".qweight", {k / 8, n}, Dtype::kI32),
          spec(module + ".qzeros", {groups, n / 8}, Dtype::kI32),
          spec(module + ".scales", {groups, n}, Dtype::kF16),
          spec(module + ".g_idx", {k}, Dtype::kI32)};
}

std::vector<TensorSpec> awq(const std::string& module, i64 n, i64 k, i64 groups) {
  return {spec(module + ".qweight", {k, n / 8}, Dtype::kI32),
          spec(module + ".qzeros", {groups, n / 8}, Dtype::kI32),
          spec(module + ".scales", {groups, n}, Dtype::kF16)};
}

std::vector<TensorSpec> fp8(const std::string& module, const Shape& weight, const Shape& scale) {
  return {spec(module + ".weight", weight, Dtype::kF8E4M3),
          spec(module + ".weight_scale_inv", scale, Dtype::kF32)};
}

std::vector<TensorSpec> packed(const std::string& module, i64 n, i64 k, i64 groups) {
  return {spec(module + ".weight_packed", {n, k / 8}, Dtype::kI32),
          spec(module + ".weight_scale", {n, groups}, Dtype::kBF16),
          spec(module + ".weight_zero_point", {n / 8, groups}, Dtype::kI32),
          spec(module + ".weight_shape", {2}, Dtype::kI64)};
}

Held held_of(const Resolution& resolution, const std::vector<TensorSpec>& tensors,
             const std::string& name, size_t axis) {
  return held(*at(resolution, tensors, name).layout, axis);
}

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
  CHECK(pack_in_order(R"("weight")") == "compressed-tensors/pack-quantized");
  CHECK(pack_in_order("null") == "compressed-tensors/pack-quantized");
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

// Block straddling in popular models: per-device size of the axis, and the block.

struct Straddled {
  const char* what;
  i64 n;
  i64 block;
  std::map<i64, bool> is_whole;  ///< by tp
};

const std::vector<Straddled> kTable = {
    {"DeepSeek-V3 dense", 18432, 128, {{2, true}, {4, true}, {8, true}, {16, true}, {32, false}}},
    {"DeepSeek-V3 expert", 2048, 128, {{2, true}, {4, true}, {8, true}, {16, true}, {32, false}}},
    {"DeepSeek-V2-Lite dense", 10944, 128, {{2, false}, {4, false}, {8, false}}},
    {"DeepSeek-V2-Lite expert", 1408, 128, {{2, false}, {4, false}, {8, false}}},
    {"Qwen3-235B expert", 1536, 128, {{2, true}, {4, true}, {8, false}, {16, false}}},
    {"Qwen3-Coder-480B expert", 2560, 128, {{2, true}, {4, true}, {8, false}}},
    {"Qwen3-30B-A3B expert", 768, 128, {{2, true}, {4, false}, {8, false}}},
    {"Qwen2.5-72B", 29568, 128, {{2, false}, {4, false}, {8, false}}},
    {"Qwen2-7B", 18944, 128, {{2, true}, {4, true}, {8, false}, {16, false}}},
    {"Llama-7B", 11008, 128, {{2, true}, {4, false}, {8, false}}},
    {"gpt-oss", 2880, 32, {{2, true}, {4, false}, {8, false}}},
    {"Llama-70B", 28672, 128, {{2, true}, {4, true}, {8, true}, {16, true}, {32, true}}},
    {"Llama-405B", 53248, 128, {{2, true}, {4, true}, {8, true}, {16, true}, {32, true}}},
};

/// A weight [n, 128] cut along n, in blocks of `block` rows.
Resolution cut_in_blocks(i64 n, i64 block, i64 tp, const std::string& policy) {
  const auto tensors = fp8("up", {n, 128}, {ceil_div(n, block), 1});
  return resolved(
      tensors, fmt::format(R"({{"quant_method": "fp8", "weight_block_size": [{}, 128]}})", block),
      fmt::format("tp={}", tp), fmt::format(R"(, "straddle": "{}")", policy));
}

TEST_CASE("cuts that fall inside blocks are errors, and only these: the table of popular models") {
  for (const Straddled& row : kTable) {
    for (const auto& [tp, is_whole] : row.is_whole) {
      const std::string what = row.what;
      CAPTURE(what);
      CAPTURE(tp);
      const auto e = error_of([&] { return cut_in_blocks(row.n, row.block, tp, "error"); });
      CHECK(e.has_value() != is_whole);
      if (e) CHECK(e->code() == ErrorCode::kBlockStraddle);
    }
  }
}

std::vector<i64> local_sizes(const Resolution& resolution, size_t tensor) {
  std::vector<i64> sizes;
  for (i64 rank = 0; rank < resolution.mesh.size(); ++rank)
    sizes.push_back((*resolution.tensors[tensor].layout->region(rank))[0].local_size());
  return sizes;
}

TEST_CASE("uneven-aligned cuts in whole blocks: the sizes of the table") {
  const auto sizes = [](i64 n, i64 block, i64 tp) {
    return local_sizes(cut_in_blocks(n, block, tp, "uneven-aligned"), 0);
  };
  CHECK(sizes(1536, 128, 8) == std::vector<i64>{256, 256, 256, 256, 128, 128, 128, 128});
  CHECK(sizes(2880, 32, 4) == std::vector<i64>{736, 736, 704, 704});
  CHECK(sizes(29568, 128, 2) == std::vector<i64>{14848, 14720});
  CHECK(sizes(18944, 128, 4) == std::vector<i64>(4, 4736));
  CHECK(sizes(1100, 128, 3) == std::vector<i64>{384, 384, 332});
  const auto result = cut_in_blocks(1536, 128, 8, "uneven-aligned");
  CHECK(local_sizes(result, 1) == std::vector<i64>{2, 2, 2, 2, 1, 1, 1, 1});
  REQUIRE(result.uneven.size() == 1);
  CHECK(result.uneven[0].sizes == local_sizes(result, 0));
}

TEST_CASE("pad rounds the axis up to whole blocks on every device, with zeros at its end") {
  const auto result = cut_in_blocks(2880, 32, 4, "pad");
  CHECK(local_sizes(result, 0) == std::vector<i64>(4, 736));
  CHECK(local_sizes(result, 1) == std::vector<i64>(4, 23));
  CHECK(result.tensors[0].by->transforms ==
        std::vector<std::string>{"pad axis 0 'mlp' from 2880 to 2944 with zeros"});
  CHECK(held(*result.tensors[0].layout, 0)[3] == "[2208, 2880) pad 64");
  CHECK(held(*result.tensors[1].layout, 0)[3] == "[69, 90) pad 2");
  CHECK_ERROR(kEmptyShard, cut_in_blocks(1536, 128, 8, "pad"));  // two devices would have padding
                                                                 // only
}

TEST_CASE("replicate-scale gives every device the scale of each block that it has a part of") {
  const auto result = cut_in_blocks(768, 128, 4, "replicate-scale");
  CHECK(local_sizes(result, 0) == std::vector<i64>(4, 192));
  CHECK(held(*result.tensors[1].layout, 0) == Held{"[0, 2)", "[1, 3)", "[3, 5)", "[4, 6)"});
  CHECK(result.tensors[1].by->transforms.size() == 1);
  CHECK(cut_in_blocks(768, 128, 2, "replicate-scale").tensors[1].by->transforms.empty());
}

TEST_CASE("refine makes blocks of the greatest common divisor, each with a copy of its scale") {
  const auto result = cut_in_blocks(1536, 128, 8, "refine");
  CHECK(local_sizes(result, 0) == std::vector<i64>(8, 192));
  CHECK(local_sizes(result, 1) == std::vector<i64>(8, 3));  // blocks of 64
  const layout::Layout& scale = *result.tensors[1].layout;
  CHECK(scale.refinement() == std::vector<i64>{2, 1});
  CHECK(held(scale, 0)[0] == "[0, 1) pad 1 [1, 2)");  // pad: the copy of block 0
  CHECK(held(scale, 0)[1] == "pad 1 [2, 3) pad 1");
  REQUIRE(scale.fills(1).size() == 1);
  CHECK(to_string(scale.fills(1)[0][0]) == "[1, 2) pad 1 [2, 3)");
  CHECK(cut_in_blocks(29568, 128, 2, "refine").tensors[1].layout->refinement()[0] == 2);
  CHECK(cut_in_blocks(2880, 32, 4, "refine").tensors[1].layout->refinement()[0] == 2);
  CHECK(cut_in_blocks(2880, 32, 8, "refine").tensors[1].layout->refinement()[0] == 4);
  CHECK(cut_in_blocks(1536, 128, 4, "refine").tensors[1].layout->refinement()[0] == 1);
}

/// Expects that no policy but refine accepts the cut, because a smaller block would be a part of
/// the tensor's bytes.
void check_has_no_copies(const std::vector<TensorSpec>& tensors, const std::string& quantization,
                         const std::string& mesh, const std::string& tensor) {
  const auto by = [&](const std::string& policy) {
    return resolved(tensors, quantization, mesh, fmt::format(R"(, "straddle": "{}")", policy));
  };
  CAPTURE(tensor);
  const auto e = error_of([&] { by("refine"); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kBlockStraddle);
  CHECK(e->tensor_name() == tensor);
  const auto notes = e->notes();
  CHECK(std::any_of(notes.begin(), notes.end(), [](const auto& note) {
    return note.second.find("a part of its bytes") != std::string::npos;
  }));
  CHECK(by("uneven-aligned").tensors.size() == tensors.size());
}

TEST_CASE("refine is refused inside of blocks that hold weights or zeros: they have no copies") {
  const std::vector<TensorSpec> mxfp4 = {
      spec("mlp.experts.down_proj_blocks", {4, 96, 3, 16}, Dtype::kU8),
      spec("mlp.experts.down_proj_scales", {4, 96, 3}, Dtype::kU8)};
  check_has_no_copies(mxfp4, R"({"quant_method": "mxfp4"})", "tp=2",
                      "mlp.experts.down_proj_blocks");
  check_has_no_copies(gptq("up", 24, 128, 1), kGptq, "tp=2", "up.qzeros");
  check_has_no_copies(gptq("down", 24, 24, 1), kActOrder, "tp=2", "down.qweight");
  check_has_no_copies(awq("up", 24, 128, 1), kAwq, "tp=2", "up.qweight");
  check_has_no_copies(packed("up", 24, 128, 1), kPack, "tp=2", "up.weight_zero_point");
  check_has_no_copies({spec("down.weight_packed", {8, 15}, Dtype::kU8)},
                      R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"})",
                      "tp=2", "down.weight_packed");
  check_has_no_copies({spec("down.weight", {8, 15}, Dtype::kI8)}, kFp8Blocks, "tp=2",
                      "down.weight");
}

TEST_CASE("refine keeps whole words and copies the scales and zeros of a group of inputs") {
  const std::string refine = R"(, "straddle": "refine")";
  const auto words = awq("down", 16, 256, 2);
  const auto result = resolved(words, kAwq, "tp=4", refine);
  CHECK(held_of(result, words, "down.qweight", 0)[1] == "[64, 128)");
  CHECK(at(result, words, "down.qzeros").layout->refinement() == std::vector<i64>{2, 1});
  CHECK(at(result, words, "down.scales").layout->refinement() == std::vector<i64>{2, 1});
  const auto zeros = packed("down", 16, 256, 2);
  CHECK(at(resolved(zeros, kPack, "tp=4", refine), zeros, "down.weight_zero_point")
            .layout->refinement() == std::vector<i64>{1, 2});
}

TEST_CASE(
    "refine is refused for groups that inputs point into, unless every cut is between groups") {
  const std::string refine = R"(, "straddle": "refine")";
  const auto words = gptq("down", 256, 1024, 8);
  const auto result = resolved(words, kGptq, "tp=4", refine);
  CHECK(held_of(result, words, "down.g_idx", 0)[1] == "[256, 512)");
  CHECK(at(result, words, "down.scales").layout->refinement() == std::vector<i64>{1, 1});
  const auto e = error_of([&] { resolved(words, kGptq, "tp=16", refine); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kStrategy);
  CHECK(e->tensor_name() == "down.g_idx");
}

TEST_CASE("whole KV groups stay together where blocks span heads") {
  std::vector<TensorSpec> tensors = fp8("q", {512, 128}, {4, 1});
  const auto kv = fp8("k", {128, 128}, {1, 1});
  tensors.insert(tensors.end(), kv.begin(), kv.end());
  const std::string aligned = R"(, "straddle": "uneven-aligned")";
  CHECK_ERROR(kBlockStraddle, resolved(tensors, kFp8Blocks, "tp=2"));  // half a block of k each
  CHECK_ERROR(kBlockStraddle, resolved(tensors, kFp8Blocks, "tp=2", aligned));  // and still
}

TEST_CASE("heads of 64 in blocks of 128 are cut in pairs") {
  const std::string more = R"(, "straddle": "uneven-aligned")";
  std::string text = kModel;
  text.replace(text.find("MORE"), 4, more);
  text.replace(text.find("EXPERTS"), 7, "null");
  text.replace(text.find("\"size\": 8"), 9, "\"size\": 12");
  text.replace(text.find("\"size\": 2"), 9, "\"size\": 6");
  const Mapping mapping = mapping_of(text);
  std::vector<TensorSpec> tensors = fp8("q", {768, 128}, {6, 1});
  const auto k = fp8("k", {384, 128}, {3, 1});
  const auto o = fp8("o", {128, 768}, {1, 6});
  tensors.insert(tensors.end(), k.begin(), k.end());
  tensors.insert(tensors.end(), o.begin(), o.end());
  const ModelConfig config = config_of(R"({"quantization_config": )" + kFp8Blocks + "}");
  const auto result = resolve(with_quantization(mapping, &config), tensors, &config, over("tp=2"));
  CHECK(held_of(result, tensors, "k.weight", 0) == Held{"[0, 256)", "[256, 384)"});
  CHECK(held_of(result, tensors, "q.weight", 0) == Held{"[0, 512)", "[512, 768)"});
  CHECK(held_of(result, tensors, "o.weight", 1) == Held{"[0, 512)", "[512, 768)"});
  CHECK(held_of(result, tensors, "q.weight_scale_inv", 0) == Held{"[0, 4)", "[4, 6)"});
}

}  // namespace
}  // namespace shardtool::mapping
