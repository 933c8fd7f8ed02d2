// Cuts that fall inside blocks of quantised weights, by policy.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/mapping/quantization.h"
#include "lib/mapping/resolve/cut_checks.h"
#include "tests/mapping/quantised_tensors.h"

namespace shardtool::mapping {
namespace {

/// Axis of a popular model: its size on one device, and the block.
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

TEST_CASE("a padded axis is rounded up to pad_to and to whole blocks on every device") {
  const auto sizes = [](i64 block, i64 pad_to, const std::string& policy) {
    std::string text = kModel;
    text.replace(text.find("MORE"), 4, fmt::format(R"(, "straddle": "{}")", policy));
    text.replace(text.find("EXPERTS"), 7, "null");
    text.replace(text.find("\"mlp\": \"tp\""), 11,
                 fmt::format(R"("mlp": {{"mesh": "tp", "uneven": "pad", "pad_to": {}}})", pad_to));
    const ModelConfig config = config_of(fmt::format(
        R"({{"quantization_config": {{"quant_method": "fp8", "weight_block_size": [{}, 128]}}}})",
        block));
    const auto tensors = fp8("up", {176, 128}, {ceil_div(176, block), 1});
    return local_sizes(
        resolve(with_quantization(mapping_of(text), &config), tensors, &config, over("tp=2")), 0);
  };
  CHECK(sizes(16, 8, "uneven-aligned") == std::vector<i64>{96, 96});
  CHECK(sizes(32, 8, "uneven-aligned") == std::vector<i64>{96, 96});
  CHECK(sizes(16, 40, "uneven-aligned") == std::vector<i64>{160, 160});
  CHECK(sizes(16, 40, "pad") == std::vector<i64>{160, 160});
  CHECK(sizes(16, 8, "pad") == std::vector<i64>{96, 96});
}

TEST_CASE("an uneven cut in whole blocks is counted in blocks") {
  const auto result = cut_in_blocks(176, 16, 2, "uneven-aligned");
  REQUIRE(result.uneven.size() == 1);
  const auto text = [](const Resolution& of) {
    return even_counts(of.uneven[0].units, std::ssize(of.uneven[0].sizes));
  };
  CHECK(text(result) == "176 in runs of 16 divides over 1 or 11 devices");
  CHECK(text(cut_in_blocks(1100, 128, 3, "uneven-aligned")) ==
        "1100 in runs of 128 divides over 1 device");
}

TEST_CASE("companions of one kind that cannot follow are reported once") {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 3; ++i) {
    const auto more = fp8(fmt::format("l.{}.up", i), {1536, 128}, {12, 1});
    tensors.insert(tensors.end(), more.begin(), more.end());
  }
  const ModelConfig config = config_of(R"({"quantization_config": )" + kFp8Blocks + "}");
  ResolveOptions options = over("tp=8");
  i64 errors = 0;
  options.report = [&](const Error& e) {
    CHECK(e.code() == ErrorCode::kBlockStraddle);
    ++errors;
  };
  const auto result = resolve(with_quantization(model("tp=8"), &config), tensors, &config, options);
  CHECK(errors == 1);
  CHECK(result.tensors.size() == 3);  // the weights
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

/// Expects that no policy that copies scales accepts the cut, because a block of this tensor holds
/// values of several indices.
void check_has_no_copies(const std::vector<TensorSpec>& tensors, const std::string& quantization,
                         const std::string& mesh, const std::string& tensor) {
  const auto by = [&](const std::string& policy) {
    return resolved(tensors, quantization, mesh, fmt::format(R"(, "straddle": "{}")", policy));
  };
  CAPTURE(tensor);
  for (const std::string policy : {"refine", "replicate-scale"}) {
    CAPTURE(policy);
    const auto e = error_of([&] { by(policy); });
    REQUIRE(e);
    CHECK(e->code() == ErrorCode::kBlockStraddle);
    CHECK(e->tensor_name() == tensor);
    const auto notes = e->notes();
    CHECK(std::any_of(notes.begin(), notes.end(), [](const auto& note) {
      return note.second.find("holds several values") != std::string::npos;
    }));
  }
  CHECK(by("uneven-aligned").tensors.size() == tensors.size());
}

TEST_CASE("blocks that hold weights or zeros have no copies: refine and replicate-scale refuse") {
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

TEST_CASE("a scale that padding keeps from being shared is not told to be a block of values") {
  std::string text = kModel;
  text.replace(text.find("MORE"), 4, R"(, "straddle": "replicate-scale")");
  text.replace(text.find("EXPERTS"), 7, "null");
  text.replace(text.find("\"mlp\": \"tp\""), 11, R"("mlp": {"mesh": "tp", "uneven": "pad"})");
  const ModelConfig config = config_of(R"({"quantization_config": )" + kFp8Blocks + "}");
  const auto e = error_of([&] {
    return resolve(with_quantization(mapping_of(text), &config), fp8("up", {1100, 128}, {9, 1}),
                   &config, over("tp=3"));
  });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kBlockStraddle);
  for (const auto& note : e->notes()) CHECK(note.first != "straddle");
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
