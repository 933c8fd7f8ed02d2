// Positions chosen by an index: if scores are nearly equal, the whole model's choice is used.
#include "lib/ops/attention/position_choice.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "lib/api/transform.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

using ops::Choice;

/// One query of four positions, of which two are chosen.
const ops::PositionChoice kQuery{1, 4, 2, false};

TEST_CASE("f64 chooses by its own scores where they are clear, and writes nothing down") {
  Choice made;
  i64 undecidable = 0;
  std::vector<double> scores{0.5, 3, 1, 2};
  ops::choose_positions(kQuery, {nullptr, &made, &undecidable}, scores);
  CHECK(scores == std::vector<double>{0, 1, 0, 1});
  CHECK(made == Choice{-1, -1});
  CHECK(undecidable == 0);
  scores = {4, 3, 1, 2};
  ops::choose_positions(kQuery, {&made, nullptr, &undecidable}, scores);
  CHECK(scores == std::vector<double>{1, 1, 0, 0});
}

TEST_CASE("where they are not it says so, and the choice is replayed") {
  Choice made;
  i64 undecidable = 0;
  std::vector<double> scores{2 - 1e-12, 3, 1, 2};
  ops::choose_positions(kQuery, {nullptr, &made, &undecidable}, scores);
  CHECK(scores == std::vector<double>{0, 1, 0, 1});
  CHECK(made == Choice{1, 3});
  CHECK(undecidable == 1);
  scores = {2 + 1e-12, 3, 1, 2};
  ops::choose_positions(kQuery, {&made, nullptr, &undecidable}, scores);
  CHECK(scores == std::vector<double>{0, 1, 0, 1});
  CHECK(undecidable == 1);
}

TEST_CASE("f32 replays every choice, and a query of fewer positions sees all") {
  Choice made;
  std::vector<float> scores{0.5, 3, 1, 2};
  ops::choose_positions(kQuery, {nullptr, &made, nullptr}, scores);
  CHECK(made == Choice{1, 3});
  scores = {9, 3, 9, 2};
  ops::choose_positions(kQuery, {&made, nullptr, nullptr}, scores);
  CHECK(scores == std::vector<float>{0, 1, 0, 1});
  std::vector<float> first{5, -1, -1, -1};
  ops::choose_positions({1, 4, 2, true}, {nullptr, &made, nullptr}, first);
  CHECK(first.front() == 1);
  CHECK(made == Choice{-1, -1});
}

/// Writes a model whose index has head weights of +number and -number in turn.
std::string with_index_weights(const std::string& path, float number) {
  const std::string model = model_folder("glm_moe_dsa");
  Tensors tensors = read_tensors(model, "model");
  for (auto& [name, tensor] : tensors) {
    if (!name.ends_with("indexer.weights_proj.weight")) continue;
    REQUIRE(tensor.spec.dtype == Dtype::kF32);
    for (size_t i = 0; i * sizeof number < tensor.bytes.size(); ++i) {
      const float one = i % 2 == 0 ? number : -number;
      std::memcpy(tensor.bytes.data() + i * sizeof number, &one, sizeof number);
    }
  }
  write_checkpoint(path, tensors);
  std::filesystem::copy_file(model + "/config.json", path + "/config.json");
  return path;
}

TEST_CASE("an index that decides nothing chooses as the whole model does, another by itself") {
  for (const bool is_near : {true, false}) {
    CAPTURE(is_near);
    const TempFolder folder;
    const float size = is_near ? 1e-20F : 1;
    api::SplitOptions split;
    split.source = with_index_weights(folder / "other", -size);
    split.mapping.mesh = mesh::parse_mesh("tp=2");
    split.write.output = folder / "parts";
    api::split(split);
    api::ValidateOptions options;
    options.sources = {split.write.output};
    options.reference = with_index_weights(folder / "whole", size);
    options.resources.threads = 1;
    const api::ValidateReport report = api::validate(options);
    CHECK(report.tiers.at(1).outcome == engine::Outcome::kFail);
    CHECK(report.tiers.at(2).outcome ==
          (is_near ? engine::Outcome::kPass : engine::Outcome::kFail));
    CHECK((report.undecidable_tokens > 0) == is_near);
  }
}

}  // namespace
}  // namespace shardtool::test
