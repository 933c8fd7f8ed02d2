// Files of another tool hold the whole model of their config.json, or are refused.
#include "lib/api/transfer/sources/whole_model.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/api/diff.h"
#include "lib/api/explain.h"
#include "lib/api/inspect.h"
#include "lib/api/plan.h"
#include "lib/api/reading/opened_checkpoint.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/layouts/tables.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using nlohmann::json;
using test::TempFolder;
using test::Tensors;

json llama_config() {
  return {{"model_type", "llama"},    {"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", 8},         {"intermediate_size", 6},
          {"num_hidden_layers", 2},   {"num_attention_heads", 4},
          {"num_key_value_heads", 4}, {"head_dim", 2},
          {"vocab_size", 65},         {"tie_word_embeddings", false}};
}

/// A Llama of two layers under Megatron's names, with padded tables.
Tensors megatron_llama() {
  Tensors tensors;
  const auto add = [&tensors](const std::string& name, const Shape& shape) {
    tensors[name] = test::numbered_tensor(name, Dtype::kBF16, shape);
  };
  add("embedding.word_embeddings.weight", {66, 8});
  add("output_layer.weight", {66, 8});
  add("decoder.final_layernorm.weight", {8});
  for (int layer = 0; layer < 2; ++layer) {
    const std::string at = fmt::format("decoder.layers.{}.", layer);
    add(at + "self_attention.linear_qkv.weight", {24, 8});
    add(at + "self_attention.linear_qkv.layer_norm_weight", {8});
    add(at + "self_attention.linear_proj.weight", {8, 8});
    add(at + "mlp.linear_fc1.weight", {12, 8});
    add(at + "mlp.linear_fc1.layer_norm_weight", {8});
    add(at + "mlp.linear_fc2.weight", {8, 6});
  }
  return tensors;
}

/// Writes a model and merges it. Returns the name of the source.
std::string write_and_merge(const TempFolder& folder, const Tensors& tensors, const json& config,
                            TransformReport& report) {
  test::write_checkpoint(folder / "files", tensors);
  std::ofstream(folder / "files/config.json") << config.dump();
  MergeOptions options;
  options.sources = {"megatron:" + folder / "files"};
  options.write.output = folder / "merged";
  report = merge(options);
  return options.sources.front();
}

TransformReport merged(const Tensors& tensors, const json& config) {
  const TempFolder folder;
  TransformReport report;
  write_and_merge(folder, tensors, config, report);
  return report;
}

MappingChoice on_two_devices() {
  MappingChoice choice;
  choice.mesh = mesh::Mesh({{"tp", 2}});
  return choice;
}

/// Tensors of every file of a split, by the file's name.
std::map<std::string, json> split_of(const std::string& source, const std::string& output,
                                     const std::string& layout) {
  SplitOptions options;
  options.source = source;
  options.mapping = on_two_devices();
  options.write.output = output;
  options.write.layout = layout;
  split(options);
  std::map<std::string, json> files;
  for (const auto& entry : std::filesystem::directory_iterator(output)) {
    const std::string file = entry.path().stem();
    if (entry.path().extension() != ".safetensors") continue;
    files[file] = test::rows_of(test::read_tensors(output, file));
  }
  return files;
}

/// Rows of a report on tensors that do not name files.
std::vector<std::string> listed(const std::string& source) {
  InspectOptions options;
  options.source = source;
  options.mapping = on_two_devices();
  std::vector<std::string> rows;
  for (const InspectTensor& tensor : inspect(options).list) {
    rows.push_back(fmt::format("{} {} {} {} {}", tensor.name, tensor.dtype,
                               shardtool::to_string(tensor.shape), tensor.rule,
                               tensor.shards.size()));
  }
  return rows;
}

/// Bytes of weights per device.
std::vector<i64> planned(const std::string& source) {
  PlanOptions options;
  options.sources = {source};
  options.mapping = on_two_devices();
  const PlanReport report = make_plan(options);
  std::vector<i64> bytes;
  for (const PlanDevice& device : report.memory.devices) bytes.push_back(device.weights);
  return bytes;
}

/// Error of merging the model without the tensors that begin so.
Error error_without(const std::string& beginning) {
  Tensors tensors = megatron_llama();
  std::erase_if(tensors, [&](const auto& entry) { return entry.first.starts_with(beginning); });
  const auto error = testing::error_of([&] { merged(tensors, llama_config()); });
  REQUIRE(error);
  return *error;
}

/// Error of merging the model with another value in config.json; null leaves the key out.
Error error_with(const std::string& key, const json& value) {
  json config = llama_config();
  config[key] = value;
  if (value.is_null()) config.erase(key);
  const auto error = testing::error_of([&] { merged(megatron_llama(), config); });
  REQUIRE(error);
  return *error;
}

}  // namespace

TEST_CASE("a whole model of another tool is merged without a warning") {
  const TransformReport report = merged(megatron_llama(), llama_config());
  CHECK(report.plan.tensors == 3 + 2 * 9);
  CHECK(report.warnings.empty());
}

TEST_CASE("every command takes another tool's files as it takes what merge makes of them") {
  const TempFolder folder;
  TransformReport report;
  const std::string foreign = write_and_merge(folder, megatron_llama(), llama_config(), report);
  const std::string whole = folder / "merged";
  for (const std::string layout : {"plain", "vllm", "dcp-hf"}) {
    CAPTURE(layout);
    const auto parts = split_of(foreign, folder / layout, layout);
    CHECK_FALSE(parts.empty());
    CHECK(parts == split_of(whole, folder / layout + "-whole", layout));
  }
  CHECK(listed(foreign).size() == report.plan.tensors);
  CHECK(listed(foreign) == listed(whole));
  CHECK(planned(foreign) == planned(whole));
  DiffOptions to_whole;
  to_whole.a = foreign;
  to_whole.b = whole;
  CHECK(diff(to_whole).equal);
  to_whole.a = whole;
  to_whole.b = foreign;
  CHECK(diff(to_whole).equal);
  ExplainOptions one;
  one.source = foreign;
  one.tensor = "model.layers.1.self_attn.k_proj.weight";
  one.mapping = on_two_devices();
  CHECK(explain(one).tensor.shape == Shape{8, 8});
  ValidateOptions proof;
  proof.sources = {folder / "vllm"};
  proof.reference = foreign;
  std::filesystem::remove(folder / "files/config.json");  // the shards have it
  const ValidateReport proved = validate(proof);
  REQUIRE(proved.bytes);
  CHECK(proved.bytes->parts > 0);
  CHECK(proved.bytes->differing == 0);
  proof.reference = whole;
  CHECK(validate(proof).digest == proved.digest);
  CHECK_ERROR(kConfig, open_logical({foreign}));
  OpenOptions options{{foreign}, MappingChoice()};
  options.mapping->config = folder / "merged/config.json";
  options.mapping->mesh = mesh::Mesh({{"tp", 2}});
  const OpenedCheckpoint opened(options);
  CHECK(opened.format() == "megatron@0.16");
  CHECK(opened.size() == static_cast<size_t>(report.plan.tensors));
}

TEST_CASE("a plan of another tool's files is applied to them") {
  const TempFolder folder;
  TransformReport report;
  const std::string foreign = write_and_merge(folder, megatron_llama(), llama_config(), report);
  std::filesystem::rename(folder / "files/config.json", folder / "config.json");
  PlanOptions plan;
  plan.sources = {foreign};
  plan.mapping.config = folder / "config.json";
  plan.to_mesh = mesh::Mesh({{"tp", 2}});
  plan.recipe = true;
  folder.write("plan.json", sealed(R"({"format_version": "1.0", "tool": {"name": "shardtool",
      "version": ")" SHARDTOOL_VERSION R"("}, "apply": )" +
                                   make_plan(plan).recipe));
  ReshardOptions apply;
  apply.plan = folder / "plan.json";
  apply.write.output = folder / "planned";
  CHECK_NOTHROW(reshard(apply));
  DiffOptions to_whole;
  to_whole.a = folder / "planned";
  to_whole.b = folder / "merged";
  CHECK(diff(to_whole).equal);
  to_whole.a = foreign;
  to_whole.config = plan.mapping.config;
  CHECK(diff(to_whole).equal);
  InspectOptions look;
  look.source = foreign;
  look.mapping.emplace().config = plan.mapping.config;
  CHECK(std::ssize(inspect(look).list) == report.plan.tensors);
}

TEST_CASE("files of another tool that are opened as they are get advice") {
  const TempFolder folder;
  TransformReport report;
  write_and_merge(folder, megatron_llama(), llama_config(), report);
  const std::string files = folder / "files";
  const std::string advice = "the names are those of megatron: give megatron:" + files;
  const auto error = testing::error_of([&] { split_of(files, folder / "split", "plain"); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kNoRule);
  CHECK(std::ranges::count(error->help_lines(), advice) == 1);
  MergeOptions options;
  options.sources = {files};
  options.write.output = folder / "as-they-are";
  const TransformReport merged = merge(options);
  REQUIRE(merged.warnings.size() == 1);
  CHECK(merged.warnings.front().find(advice) != std::string::npos);
  options.sources = {folder / "merged"};
  options.write.output = folder / "again";
  CHECK(merge(options).warnings.empty());
}

TEST_CASE("an empty list of paths is no checkpoint") {
  CHECK_ERROR(kUsage, open_logical({}));
}

TEST_CASE("paths in different forms are no checkpoint") {
  const TempFolder folder;
  TransformReport report;
  const std::string foreign = write_and_merge(folder, megatron_llama(), llama_config(), report);
  CHECK_ERROR(kUsage, open_logical({foreign, folder / "merged"}));
  CHECK_ERROR(kUsage, open_logical({folder / "merged", foreign}));
  CHECK_ERROR(kUsage, open_logical({"megatrn:" + folder / "files"}));
  CHECK_ERROR(kUsage, open_logical({"megatron:" + folder / "merged", "meta:" + folder / "files"}));
}

TEST_CASE("a tensor that the model has and no file holds is named") {
  const std::pair<std::string, std::string> cases[] = {
      {"decoder.layers.1.", "model.layers.1"},
      {"decoder.layers.1.mlp.linear_fc2", "model.layers.1.mlp.down_proj.weight"},
      {"decoder.final_layernorm", "model.norm.weight"},
      {"output_layer", "lm_head.weight"},
      {"embedding", "model.embed_tokens.weight"}};
  for (const auto& [removed, missing] : cases) {
    CAPTURE(removed);
    const Error error = error_without(removed);
    CHECK(error.code() == ErrorCode::kCoverage);
    CHECK(error.tensor_name().substr(0, missing.size()) == missing);
    CHECK_FALSE(error.help_lines().empty());
  }
}

TEST_CASE("a tensor that all layers lack is named, too") {
  Tensors tensors = megatron_llama();
  std::erase_if(tensors, [](const auto& entry) { return entry.first.ends_with("fc2.weight"); });
  const auto error = testing::error_of([&] { merged(tensors, llama_config()); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kCoverage);
  CHECK(error->tensor_name() == "model.layers.0.mlp.down_proj.weight");
}

TEST_CASE("a config.json of more layers asks for tensors that are missing") {
  const Error error = error_with("num_hidden_layers", 3);
  CHECK(error.code() == ErrorCode::kCoverage);
  CHECK(error.tensor_name().starts_with("model.layers.2"));
  CHECK(error_with("num_hidden_layers", nullptr).code() == ErrorCode::kConfig);
}

TEST_CASE("fused heads are not cut by a config.json that contradicts their width") {
  // 24 rows are 12 heads of 2, and would be 8 heads of 3.
  const Error error = error_with("num_key_value_heads", 2);
  CHECK(error.code() == ErrorCode::kShapeMismatch);
  CHECK(error.tensor_name() == "model.layers.0.self_attn.q_proj.weight");
  json config = llama_config();
  config["num_key_value_heads"] = 2;
  config.erase("head_dim");
  CHECK_ERROR(kShapeMismatch, merged(megatron_llama(), config));
  CHECK(error_with("hidden_size", 16).code() == ErrorCode::kShapeMismatch);
  CHECK(error_with("intermediate_size", 8).code() == ErrorCode::kShapeMismatch);
}

}  // namespace shardtool::api
