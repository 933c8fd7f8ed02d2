// Adapters of PEFT have few tensors of the model whose config.json they need.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/base/error.h"
#include "tests/check/broken_checkpoints.h"
#include "tests/support/throws.h"

namespace shardtool::test {
namespace {

constexpr const char* kModelConfig = SHARDTOOL_SAMPLE "/config.json";

/// A matrix of the sample that an adapter changes, [out, in].
struct Changed {
  const char* module;
  i64 out, in;
};

constexpr Changed kAttention[] = {{"self_attn.q_proj", 64, 64}, {"self_attn.v_proj", 16, 64}};
constexpr Changed kMlp[] = {{"mlp.gate_proj", 176, 64}, {"mlp.down_proj", 64, 176}};

/// Writes an adapter of rank 4 for these matrices of the layers. Returns its folder.
std::string write_adapter(const TempFolder& folder, std::span<const Changed> matrices,
                          const std::vector<int>& layers) {
  std::vector<WrittenTensor> tensors;
  for (const int layer : layers) {
    for (const auto& [module, out, in] : matrices) {
      const std::string name = fmt::format("base_model.model.model.layers.{}.{}.", layer, module);
      tensors.push_back({name + "lora_A.weight", "BF16", {4, in}});
      tensors.push_back({name + "lora_B.weight", "BF16", {out, 4}});
    }
  }
  write_tensors(folder, "adapter/adapter_model.safetensors", tensors);
  folder.write("adapter/adapter_config.json", R"({"peft_type": "LORA", "r": 4})");
  return folder / "adapter";
}

api::MappingChoice of_sample(const char* mesh) {
  api::MappingChoice choice;
  choice.config = kModelConfig;
  choice.mesh = mesh::parse_mesh(mesh);
  return choice;
}

/// Returns the rules of all errors about a checkpoint, with the config.json of the sample.
std::vector<std::string> errors_of(const std::string& source, const char* mesh) {
  api::CheckOptions options = options_for(source);
  options.mapping = of_sample(mesh);
  std::vector<std::string> errors;
  for (const check::RuleCount& row : api::check(options).rules) {
    if (row.severity == check::Severity::kError) errors.emplace_back(check::rule_info(row.rule).id);
  }
  return errors;
}

TEST_CASE("an adapter lacks nothing: in its folder, as a file alone, and as an output of split") {
  for (const std::span<const Changed> matrices :
       {std::span<const Changed>(kAttention), std::span<const Changed>(kMlp)}) {
    for (const std::vector<int>& layers : {std::vector<int>{0, 1}, {1}}) {
      CAPTURE(matrices.front().module);
      CAPTURE(layers.size());
      const TempFolder folder;
      const std::string adapter = write_adapter(folder, matrices, layers);
      CHECK(errors_of(adapter, "tp=2") == std::vector<std::string>{});
      CHECK(errors_of(adapter + "/adapter_model.safetensors", "tp=2") ==
            std::vector<std::string>{});
      api::SplitOptions options;
      options.source = adapter;
      options.mapping = of_sample("tp=2");
      options.write.output = folder / "out";
      api::split(options);
      CHECK(api::check(options_for(options.write.output)).errors == 0);
    }
  }
}

TEST_CASE("shards of an adapter without a manifest lack nothing") {
  const TempFolder folder;
  api::SplitOptions options;
  options.source = write_adapter(folder, kAttention, {0, 1});
  options.mapping = of_sample("tp=2");
  options.write.output = folder / "out";
  api::split(options);
  REQUIRE(std::filesystem::remove(options.write.output + "/manifest.json"));
  CHECK(errors_of(options.write.output, "tp=2") == std::vector<std::string>{});
}

TEST_CASE("a model beside the config of an adapter lacks its tensors all the same") {
  const TempFolder folder;
  write_tensors(folder, "model/model.safetensors", {{"model.norm.weight", "BF16", {64}}});
  folder.write("model/adapter_config.json", R"({"peft_type": "LORA"})");
  folder.write("model/config.json", read_file(kModelConfig));
  const api::CheckReport report = api::check(options_for(folder / "model"));
  CHECK(count_of(report, check::CheckRule::kTensorMissing) == 1);
}

/// Returns the advice of the finding that tensors are missing beside these.
std::string advice_beside(const std::vector<WrittenTensor>& tensors) {
  const TempFolder folder;
  write_tensors(folder, "model/model.safetensors", tensors);
  folder.write("model/config.json", read_file(kModelConfig));
  const api::CheckReport report = api::check(options_for(folder / "model"));
  const auto found =
      std::ranges::find(report.findings, check::CheckRule::kTensorMissing, &check::Finding::rule);
  return found == report.findings.end() ? "no such finding" : found->fix;
}

TEST_CASE("tensors that only have other names are not said to be in missing files") {
  const WrittenTensor norm{"module.model.norm.weight", "BF16", {64}};
  const WrittenTensor head{"module.lm_head.weight", "BF16", {1000, 64}};
  const auto beside = [&](const char* name) {
    return advice_beside({norm, head, {name, "BF16", {1000, 64}}});
  };
  CHECK(advice_beside({norm, head}).find("fetch the missing files") != std::string::npos);
  CHECK(beside("module.model.embed_tokens.weight").find("FOLDER#module ") != std::string::npos);
  CHECK(beside("other.model.embed_tokens.weight").find("fetch the missing files") !=
        std::string::npos);
  CHECK(beside("module.model.embed_tokens.base_layer.weight").find("merge_and_unload") !=
        std::string::npos);
}

TEST_CASE("an adapter without a config.json is told whose it needs") {
  const TempFolder folder;
  api::SplitOptions options;
  options.source = write_adapter(folder, kAttention, {0, 1});
  options.mapping.mesh = mesh::parse_mesh("tp=2");
  options.write.output = folder / "out";
  const auto error = testing::error_of([&] { return api::split(options); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kConfig);
  REQUIRE_FALSE(error->help_lines().empty());
  CHECK(error->help_lines().front().find("--model-config") != std::string::npos);
}

}  // namespace
}  // namespace shardtool::test
