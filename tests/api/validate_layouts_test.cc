// validate proves what split wrote, in the form of every engine, and finds one changed bit in it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;

const std::string kReference = SHARDTOOL_SOURCE_DIR "/samples/tiny-llama";

std::string split_in(const TempFolder& folder, const std::string& layout,
                     const std::string& source = kReference) {
  SplitOptions options;
  options.source = source;
  options.mapping.mesh = mesh::parse_mesh("tp=2");
  options.write.layout = layout;
  options.write.output = folder / layout;
  split(options);
  return options.write.output;
}

ValidateReport proved(const std::string& parts, const std::string& reference = kReference) {
  ValidateOptions options;
  options.sources = {parts};
  options.reference = reference;
  options.quick = true;
  return validate(options);
}

TEST_CASE("validate proves the output of every layout, and finds a changed bit") {
  for (const std::string layout : {"plain", "vllm", "sglang", "meta", "dcp", "dcp-hf"}) {
    CAPTURE(layout);
    const TempFolder folder;
    const std::string parts = split_in(folder, layout);
    const ValidateReport sound = proved(parts);
    CHECK(sound.passes());
    CHECK(sound.coverage == 100);
    for (const char* name :
         {"model.layers.1.self_attn.k_proj.weight", "model.layers.0.mlp.down_proj.weight"}) {
      test::flip_bit_of_last_shard(parts, name);
      const ValidateReport changed = proved(parts);
      CHECK_FALSE(changed.passes());
      REQUIRE(!changed.faults.empty());
      CHECK(changed.faults.front().tensor == name);
      test::flip_bit_of_last_shard(parts, name);
    }
  }
}

TEST_CASE("without a reference, rows that are stored in another order are held against hashes") {
  const TempFolder folder;
  const std::string parts = split_in(folder, "meta");
  CHECK(proved(parts, "").passes());
  test::flip_bit_of_last_shard(parts, "model.layers.1.self_attn.k_proj.weight");
  CHECK_FALSE(proved(parts, "").passes());
}

TEST_CASE("a merged checkpoint is compared with the model as a whole") {
  const TempFolder folder;
  MergeOptions options;
  options.write.output = folder / "merged";
  options.write.force = true;
  // A checkpoint that no split has made has no mapping that the manifest could record.
  for (const std::string& source : {split_in(folder, "plain"), kReference}) {
    CAPTURE(source);
    options.sources = {source};
    merge(options);
    const ValidateReport report = proved(options.write.output);
    CHECK(report.passes());
    CHECK(report.ranks == 1);
  }
}

TEST_CASE("a whole checkpoint has no shards that a mapping could place") {
  const TempFolder folder;
  ValidateOptions options;
  options.sources = {split_in(folder, "dcp")};
  CHECK_ERROR(kUsage, validate(options));
  options.reference = kReference;
  options.mapping.layout = "compute";
  CHECK_ERROR(kUsage, validate(options));
  options.mapping.layout.clear();
  options.mapping.mesh = mesh::parse_mesh("tp=2");
  CHECK_ERROR(kUsage, validate(options));
}

TEST_CASE("what merge makes of an output in another order is proved, too") {
  const TempFolder folder;
  MergeOptions options;
  options.sources = {split_in(folder, "meta")};
  options.write.output = folder / "merged";
  merge(options);
  CHECK(proved(folder / "merged").passes());
  CHECK(proved(folder / "merged", "").passes());
  test::flip_bit_of_last_shard(folder / "merged", "model.layers.1.self_attn.k_proj.weight");
  CHECK_FALSE(proved(folder / "merged").passes());
}

TEST_CASE("results that several devices hold are not summed twice, but refused") {
  for (const char* axis : {"mlp", "vocab"}) {
    CAPTURE(axis);
    const TempFolder folder;
    SplitOptions options;
    options.source = kReference;
    options.mapping.mesh = mesh::parse_mesh("tp=4");
    options.mapping.settings = {{std::string("axes.") + axis, "tp:(1)2"}};
    options.write.output = folder / "parts";
    split(options);
    CHECK_ERROR(kUnsupported, proved(options.write.output));
    options.mapping.mesh = mesh::parse_mesh("a=2,tp=2");
    options.mapping.settings = {{std::string("axes.") + axis, "a"}};
    options.write.output = folder / "whole axes";
    split(options);
    CHECK(proved(options.write.output).passes());
  }
}

TEST_CASE("validate proves what merge makes of a checkpoint that was never cut") {
  const TempFolder folder;
  MergeOptions options;
  options.sources = {kReference};
  options.write.output = folder / "copied";
  merge(options);
  CHECK(proved(options.write.output).passes());
}

TEST_CASE("an input that is gathered because it is cut otherwise than its weight is told") {
  const TempFolder folder;
  // Gate and up in blocks, down dealt out: every number is right, but only after a gather.
  const std::string mapping = folder.write("mapping.json", R"({"version": 1,
    "extends": ["preset:llama"], "axes": {"dealt": {"mesh": "tp", "owners": "round_robin"}},
    "overrides": [{"match": "model.layers.<layer>.mlp.down_proj.weight",
                   "dims": [null, "dealt"]}]})");
  SplitOptions options;
  options.source = kReference;
  options.mapping.path = mapping;
  options.mapping.mesh = mesh::parse_mesh("tp=2");
  options.write.output = folder / "parts";
  split(options);
  const ValidateReport report = proved(options.write.output);
  CHECK(report.passes());
  REQUIRE(!report.notes.empty());
  CHECK(
      report.notes.front().starts_with("the input of model.layers.0.mlp.down_proj.weight is cut"));
  CHECK(proved(split_in(folder, "plain")).notes.empty());
}

TEST_CASE("a tensor that the model does not use is compared by its bytes, in every form") {
  const TempFolder folder;
  const auto write = [&](const std::string& name, float frequency) {
    test::Tensors tensors = test::read_tensors(kReference, "model-");
    auto& unused = tensors["model.layers.0.self_attn.rotary_emb.inv_freq"];
    unused.spec = {"model.layers.0.self_attn.rotary_emb.inv_freq", Dtype::kF32, {1}};
    unused.bytes.resize(sizeof frequency);
    std::memcpy(unused.bytes.data(), &frequency, sizeof frequency);
    test::write_checkpoint(folder / name, tensors, 1);
    std::filesystem::copy(kReference + "/config.json", folder / name);
  };
  write("model", 0.5F);
  write("other", 0.25F);
  CHECK(proved(folder / "model", folder / "model").passes());
  CHECK_FALSE(proved(folder / "other", folder / "model").passes());
  for (const std::string layout : {"plain", "dcp", "dcp-hf"}) {
    CAPTURE(layout);
    const std::string parts = split_in(folder, layout, folder / "other");
    CHECK(proved(parts, folder / "other").passes());
    const ValidateReport report = proved(parts, folder / "model");
    CHECK_FALSE(report.passes());
    REQUIRE(report.bytes);
    CHECK(report.bytes->different.front().tensor == "model.layers.0.self_attn.rotary_emb.inv_freq");
  }
}

}  // namespace
}  // namespace shardtool::api
