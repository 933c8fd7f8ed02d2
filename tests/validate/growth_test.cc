// The work of validate grows with the ranks, not with their square, and its memory less.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/engine/validation.h"
#include "tests/support/allocated_bytes.h"
#include "tests/validate/compared.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

/// Returns how often a validation asks for the layout of each bias of the shards.
std::map<std::string, i64> asked_for_biases(const std::string& model, const std::string& mesh) {
  const TempFolder folder;
  const Compared compared(model_folder(model), split_copy(model, mesh, folder));
  engine::Side shards = compared.shards();
  std::vector<std::atomic<i64>> asked(shards.tensors.size());
  shards.layouts = [&](size_t tensor) -> const layout::Layout& {
    ++asked.at(tensor);
    return compared.shards().layouts(tensor);
  };
  engine::ValidationOptions options;
  options.resources.threads = 1;
  options.with_f64 = false;
  const auto verdict = engine::validate(compared.whole(), shards, nullptr, options);
  CHECK(verdict.tiers.front().outcome == engine::Outcome::kPass);
  std::map<std::string, i64> of_biases;
  for (size_t tensor = 0; tensor < asked.size(); ++tensor) {
    const std::string& name = shards.tensors[tensor].name;
    if (name.ends_with("bias")) of_biases[name] = asked[tensor];
  }
  return of_biases;
}

TEST_CASE("twice the ranks ask at most twice as often for the layout of any bias, even of a sum") {
  const auto of_few = asked_for_biases("gpt_oss", "dp=8,tp=2");
  const auto of_many = asked_for_biases("gpt_oss", "dp=16,tp=2");
  CHECK(of_few.contains("model.layers.0.self_attn.o_proj.bias"));
  CHECK(of_few.contains("model.layers.0.mlp.experts.down_proj_bias"));
  for (const auto& [name, few] : of_few) {
    CAPTURE(name);
    CAPTURE(few);
    CHECK(of_many.at(name) <= 2 * few);
  }
}

constexpr i64 kTokens = 32;

/// Returns the most memory that a validation of the sample has during GEMMs, in bytes.
i64 most_memory(const std::string& mesh, const std::map<std::string, std::string>& settings) {
  const TempFolder folder;
  api::SplitOptions split;
  split.source = SHARDTOOL_SOURCE_DIR "/samples/tiny-llama";
  split.mapping.mesh = mesh::parse_mesh(mesh);
  for (const auto& [key, value] : settings) split.mapping.settings.emplace_back(key, value);
  split.write.output = folder / "parts";
  api::split(split);
  const Compared compared(split.source, split.write.output);
  engine::ValidationOptions options;
  options.length = kTokens;
  options.resources.threads = 1;
  options.resources.max_memory = 1 << 20;
  const i64 before = allocated_bytes();
  i64 most = 0;
  options.resources.on_progress = [&](const exec::Progress&) {
    most = std::max(most, allocated_bytes() - before);
  };
  const auto verdict = engine::validate(compared.whole(), compared.shards(), nullptr, options);
  CHECK(verdict.tiers.front().outcome == engine::Outcome::kPass);
  return most;
}

TEST_CASE("ranks that compute the same logits, from replicas or gathered weights, keep them once") {
  if (!can_count_allocations()) return;
  constexpr i64 kFew = 4;
  constexpr i64 kMany = 32;
  constexpr i64 kLogits = kTokens * 1000 * static_cast<i64>(sizeof(double));
  const std::map<std::string, std::string> gathered = {{"axes.embed", "fsdp"}};
  for (const auto& settings : {std::map<std::string, std::string>(), gathered}) {
    CAPTURE(settings.size());
    const i64 of_few = most_memory("fsdp=4", settings);
    const i64 of_many = most_memory("fsdp=32", settings);
    CHECK((of_many - of_few) / (kMany - kFew) < kLogits * 3 / 5);
  }
}

}  // namespace
}  // namespace shardtool::test
