// The work of validate grows with the ranks, not with their square.
#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "lib/engine/validation.h"
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

}  // namespace
}  // namespace shardtool::test
