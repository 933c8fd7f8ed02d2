// Unpacking quantised weights while splitting, merging and resharding: the numbers of independent
// readers, the same in every layout and order, proved by diff.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/cast/cast.h"
#include "lib/api/check.h"
#include "lib/api/transform.h"
#include "lib/format/manifest/manifest.h"
#include "tests/golden/models.h"
#include "tests/support/throws.h"
#include "tests/validate/dequantised_ways.h"
#include "tests/validate/quantised_model.h"
#include "tests/validate/weight_reader.h"

namespace shardtool::test {
namespace {

using nlohmann::json;

TEST_CASE("unpacked weights are the numbers that the definitions of the formats give") {
  Random random(7);
  for (const std::string& form : quantised_forms()) {
    for (int round = 0; round < 3; ++round) {
      CAPTURE(form);
      CAPTURE(round);
      const QuantisedModel model = quantised_model(form, 2, random);
      const Ways ways(model, 2, any_dtype(random));
      ways.check_values("whole", ways.merge("source", "whole", true));
      const api::DiffReport proof = ways.diff("source", "whole");
      CHECK(proof.equal);
      CHECK(proof.dequantized == std::ssize(read_weights(model)));
    }
  }
}

TEST_CASE("unpacking commutes with split, merge and reshard") {
  Random random(11);
  i64 accepted = 0;
  for (const std::string& form : quantised_forms()) {
    for (int round = 0; round < 3; ++round) {
      CAPTURE(form);
      CAPTURE(round);
      const i64 tp = between(random, 2, 4);
      const QuantisedModel model = quantised_model(form, tp, random);
      const Ways ways(model, tp, any_dtype(random));
      ways.merge("source", "whole", true);
      const bool is_cut = ways.split("whole", "cut", false);
      CHECK(ways.split("source", "direct", true) == is_cut);
      if (is_cut) {
        CHECK(ways.same_shards("direct", "cut"));
        CHECK(ways.diff("source", "direct").equal);
        ways.merge("direct", "back", false);
        CHECK(ways.same("back", "whole", "model"));
      }
      // From shards of the codes, whatever was done to their blocks.
      const std::string straddle = one_of<std::string>(
          random, {"error", "uneven-aligned", "pad", "replicate-scale", "refine"});
      if (!ways.split("source", "codes", false, straddle)) continue;
      ++accepted;
      ways.merge("codes", "of_codes", true);
      CHECK(ways.same("of_codes", "whole", "model"));
      CHECK(ways.diff("codes", "whole").equal);
    }
  }
  CHECK(accepted > 20);
}

TEST_CASE("the manifest names the stored tensors with the digests that their own manifest has") {
  Random random(3);
  for (const std::string& form : quantised_forms()) {
    CAPTURE(form);
    const QuantisedModel model = quantised_model(form, 2, random);
    const Ways ways(model, 2, std::nullopt);
    if (!ways.split("source", "codes", false)) continue;
    ways.merge("codes", "whole", true);
    std::map<std::string, format::TensorRecord> stored;
    for (const auto& record : ways.manifest("codes").tensors) stored[record.name] = record;
    i64 weights = 0;
    for (const format::TensorRecord& record : ways.manifest("whole").tensors) {
      if (!record.dequantized) continue;
      ++weights;
      for (const format::StoredRecord& from : record.dequantized->from) {
        CAPTURE(from.name);
        CHECK(from.digest.has_value());
        CHECK(from.digest == stored.at(from.name).digest);
        CHECK(from.shape == stored.at(from.name).shape);
        CHECK(from.dtype == stored.at(from.name).dtype);
      }
    }
    CHECK(weights > 0);
    api::CheckOptions options;
    options.sources = {ways.at("whole")};
    options.data = check::DataSubset{};
    CHECK(api::check(options).findings.empty());
  }
}

TEST_CASE("weights of the formats' own writers are unpacked to what they packed") {
  for (const std::string format :
       {"gptq", "gptq_v2", "gptq_8bit", "gptq_act_order", "awq", "pack_quantized",
        "pack_quantized_symmetric", "nvfp4", "nvfp4_modelopt", "mxfp4"}) {
    CAPTURE(format);
    const TempFolder folder;
    api::MergeOptions options;
    options.sources = {golden::packed_model(format)};
    options.write.output = folder / "out";
    options.write.dequantize = true;
    options.write.dtype = Dtype::kF32;
    const api::TransformReport report = api::merge(options);
    const Tensors found = read_tensors(folder / "out", "model");
    const Tensors plain = read_tensors(golden::packed_model(format) + "/plain", "model");
    CHECK(report.dequantized->weights > 0);
    CHECK(found.size() == plain.size());
    for (const auto& [name, tensor] : plain) {
      CAPTURE(name);
      REQUIRE(found.contains(name));
      CHECK(found.at(name).spec.shape == tensor.spec.shape);
      CHECK(found.at(name).bytes == rounded(doubles_of(tensor), Dtype::kF32));
    }
  }
}

/// An FP8 model of one matrix, with blocks of 2 x 4, and the scales that a test wants.
QuantisedModel small_fp8(const std::vector<float>& scales) {
  QuantisedModel model;
  Tensor& codes = model.tensors["a.weight"];
  codes.spec = {"a.weight", Dtype::kF8E4M3, {4, 8}};
  codes.bytes.assign(32, 0x38);  // 1
  codes.bytes[0] = 0x7f;         // NaN
  codes.bytes[1] = 0x7e;         // 448
  codes.bytes[2] = 0x01;         // 2^-9
  Tensor& stored = model.tensors["a.weight_scale_inv"];
  stored.spec = {"a.weight_scale_inv", Dtype::kF32, {2, 2}};
  stored.bytes.resize(16);
  std::memcpy(stored.bytes.data(), scales.data(), 16);
  model.config = R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [2, 4]}})";
  return model;
}

TEST_CASE("what becomes infinite, zero or NaN is counted, and the first weight with it is named") {
  // 448 * 2^10 is too large for F16 and 2^-26 too small; 1.1 has 24 significant bits.
  const QuantisedModel model = small_fp8({1024, 1.1F, 0x1p-26F, 1});
  const Ways ways(model, 2, Dtype::kF16);
  const api::TransformReport report = ways.merge("source", "whole", true);
  ways.check_values("whole", report);
  CHECK(*report.dequantized->counts == kernels::CastCounts{32, 8, 1, 8, 1});
  CHECK(report.dequantized->overflow_example == "a.weight");
}

TEST_CASE("an element is rounded once, where a product in F32 would be rounded twice") {
  // 1.0625 * s lies below a tie of BF16 by less than half a unit of F32.
  const float scale = std::nextafter(0x1.0f8p+0F / 0x1.1p+0F, 0.0F);
  QuantisedModel model = small_fp8({scale, scale, scale, scale});
  std::fill(model.tensors["a.weight"].bytes.begin(), model.tensors["a.weight"].bytes.end(), 0x38);
  const Ways ways(model, 2, std::nullopt);
  ways.check_values("whole", ways.merge("source", "whole", true));
}

TEST_CASE(
    "config.json gives the type, BF16 without one, and files about quantisation are left out") {
  QuantisedModel model = small_fp8({1, 1, 1, 1});
  Tensor& cache = model.tensors["a.k_scale"];
  cache.spec = {"a.k_scale", Dtype::kF32, {}};
  cache.bytes.resize(4);
  const std::vector<std::pair<std::string, Dtype>> cases = {
      {"", Dtype::kBF16}, {"float16", Dtype::kF16}, {"float32", Dtype::kF32}};
  for (const auto& [name, dtype] : cases) {
    json config = json::parse(model.config);
    if (!name.empty()) config["torch_dtype"] = name;
    QuantisedModel named{model.tensors, config.dump()};
    const Ways ways(named, 2, std::nullopt);
    std::ofstream(ways.at("source") + "/hf_quant_config.json") << "{}";
    const api::TransformReport report = ways.merge("source", "whole", true);
    ways.check_values("whole", report);
    CHECK(report.dequantized->to == dtype);
    CHECK(report.dequantized->left_out == std::vector<std::string>{"a.k_scale"});
    CHECK(ways.manifest("whole").dropped == std::vector<std::string>{"a.k_scale"});
    CHECK(json::parse(file_text(ways.at("whole") + "/config.json")) ==
          json{{"torch_dtype", name.empty() ? "bfloat16" : name}});
    CHECK_FALSE(std::filesystem::exists(ways.at("whole") + "/hf_quant_config.json"));
    CHECK(ways.diff("source", "whole").equal);
  }
}

TEST_CASE("a changed shard behind a weight is found by its digest, a changed weight by diff") {
  Random random(5);
  const QuantisedModel model = quantised_model("pack-quantized", 2, random);
  const Ways ways(model, 2, std::nullopt);
  REQUIRE(ways.split("source", "codes", false));
  ways.merge("codes", "whole", true);
  const std::string weight = ways.change("whole", "q_proj.weight");
  const api::DiffReport found = ways.diff("source", "whole");
  REQUIRE(found.changed.size() == 1);
  CHECK(found.changed[0].name == weight);
  CHECK(found.changed[0].what.starts_with(
      "data after compressed-tensors/pack-quantized -> BF16, first at element [0, 0]"));
  for (const char* member : {"q_proj.weight_packed", "o_proj.weight_scale"}) {
    CHECK_FALSE(ways.change("codes", member).empty());
    CHECK_ERROR(kDataMismatch, ways.merge("codes", "damaged", true));
    ways.change("codes", member);  // back
  }
  ways.merge("codes", "again", true);
}

TEST_CASE("single ranks are those of all ranks, and have digests where they read everything") {
  Random random(13);
  for (const std::string form : {"gptq", "fp8 block", "nvfp4", "mxfp4"}) {
    CAPTURE(form);
    const QuantisedModel model = quantised_model(form, 2, random);
    const Ways ways(model, 2, std::nullopt);
    if (!ways.split("source", "all", true)) continue;
    ways.split("source", "one", true, "error", {1});
    CHECK(ways.same("all", "one", "model-rank-1-"));
    for (const format::TensorRecord& record : ways.manifest("one").tensors) {
      if (!record.dequantized) continue;
      CHECK(record.dequantized->from.front().digest.has_value() == record.digest.has_value());
    }
  }
}

TEST_CASE("what is not dequantised is refused with the reason") {
  QuantisedModel model = small_fp8({1, 1, 1, 1});
  const auto refuses = [&](const std::string& config) {
    model.config = config;
    const Ways ways(model, 2, std::nullopt);
    CHECK_ERROR(kUnsupported, ways.merge("source", "whole", true));
  };
  const std::string fp8 = model.config;
  SUBCASE("no quantisation") {
    refuses("{}");
  }
  SUBCASE("an unknown one") {
    refuses(R"({"quantization_config": {"quant_method": "bitsandbytes"}})");
  }
  SUBCASE("a weight without scales") {
    model.tensors.erase("a.weight_scale_inv");
    refuses(fp8);
  }
  SUBCASE("scales of other blocks") {
    model.tensors["a.weight_scale_inv"].spec.shape = {4, 1};
    model.tensors["a.weight"].spec.shape = {2, 16};
    refuses(fp8);
  }
  SUBCASE("fewer or more scales than the blocks of config.json") {
    for (const Shape& shape : {Shape{1, 1}, Shape{1, 2}, Shape{2, 1}, Shape{4, 2}}) {
      CAPTURE(to_string(shape));
      model.tensors["a.weight_scale_inv"] =
          numbered_tensor("a.weight_scale_inv", Dtype::kF32, shape);
      refuses(fp8);
    }
  }
  SUBCASE("scales under two names") {
    model.tensors["a.weight_scale"] = numbered_tensor("a.weight_scale", Dtype::kF32, {2, 2});
    refuses(fp8);
  }
  SUBCASE("floats under the name of a packed weight") {
    Random random(17);
    model = quantised_model("gptq", 2, random);
    const std::string end = ".qweight";
    const auto codes = std::ranges::find_if(
        model.tensors, [&](const auto& tensor) { return tensor.first.ends_with(end); });
    REQUIRE(codes != model.tensors.end());
    const std::string name = codes->first.substr(0, codes->first.size() - end.size()) + ".weight";
    model.tensors[name] = numbered_tensor(name, Dtype::kBF16, {4, 8});
    refuses(std::string(model.config));
  }
  SUBCASE("scales of integers") {
    model.tensors["a.weight_scale_inv"].spec.dtype = Dtype::kI32;
    refuses(fp8);
  }
  SUBCASE("FP4 beside FP8") {
    model.tensors["a.weight"].spec.dtype = Dtype::kI8;
    refuses(fp8);
  }
  const std::string packed = R"({"quantization_config": {"quant_method": "compressed-tensors",
    "format": "pack-quantized", "config_groups": {"group_0": {"weights": {"num_bits": 4}}}}})";
  SUBCASE("a form that no weight has") {
    model.tensors.clear();
    model.tensors["a.weight"] = numbered_tensor("a.weight", Dtype::kBF16, {4, 8});
    refuses(packed);
  }
  SUBCASE("integers of another form beside weights of this one") {
    model.tensors["b.weight"] = numbered_tensor("b.weight", Dtype::kI32, {2, 2});
    model.tensors["b.weight_scale"] = numbered_tensor("b.weight_scale", Dtype::kF32, {1});
    refuses(fp8);
  }
  SUBCASE("bytes of NVFP4 where words of integers are said") {
    model.tensors.clear();
    model.tensors["a.weight_packed"] = numbered_tensor("a.weight_packed", Dtype::kU8, {2, 16});
    model.tensors["a.weight_scale"] = numbered_tensor("a.weight_scale", Dtype::kF16, {2, 1});
    refuses(packed);
  }
  SUBCASE("layers with other parameters") {
    refuses(R"({"quantization_config": {"quant_method": "compressed-tensors",
      "format": "float-quantized", "config_groups": {"group_0": {"weights": {"num_bits": 8}},
      "group_1": {"weights": {"num_bits": 4}}}}})");
  }
}

}  // namespace
}  // namespace shardtool::test
