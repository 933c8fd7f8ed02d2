// Packed weights whose last words have codes beyond them: the words follow the cut of their axis.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "tests/mapping/quantised_tensors.h"

namespace shardtool::mapping {
namespace {

/// Stored tensors of a weight [n, k] in words of so many codes.
std::vector<TensorSpec> words_of(const std::string& module, i64 n, i64 k, i64 per_word) {
  return {spec(module + ".weight_packed", {n, ceil_div(k, per_word)}, Dtype::kI32),
          spec(module + ".weight_scale", {n, 1}, Dtype::kBF16),
          spec(module + ".weight_shape", {2}, Dtype::kI64)};
}

/// An up and a down projection between `embed` and `mlp`.
std::vector<TensorSpec> layer_of(const std::string& module, i64 mlp, i64 per_word) {
  constexpr i64 kEmbed = 16;
  std::vector<TensorSpec> tensors = words_of(module + ".up", mlp, kEmbed, per_word);
  const auto down = words_of(module + ".down", kEmbed, mlp, per_word);
  tensors.insert(tensors.end(), down.begin(), down.end());
  return tensors;
}

std::string pack_of(i64 per_word) {
  return fmt::format(R"({{"quant_method": "compressed-tensors", "format": "pack-quantized",
    "config_groups": {{"group_0": {{"weights": {{"num_bits": {}, "group_size": -1}}}}}}}})",
                     32 / per_word);
}

std::string straddling(const std::string& policy) {
  return fmt::format(R"(, "straddle": "{}")", policy);
}

/// Cuts a layer and checks that its words lie where its rows do. Returns false if that is refused.
bool is_cut_alike(i64 mlp, i64 per_word, i64 tp, const std::string& policy) {
  const auto tensors = layer_of("mlp", mlp, per_word);
  Resolution result;
  try {
    result = resolved(tensors, pack_of(per_word), fmt::format("tp={}", tp), straddling(policy));
  } catch (const Error& error) {
    const ErrorCode code = error.code();
    CHECK((code == ErrorCode::kBlockStraddle || code == ErrorCode::kEmptyShard));
    return false;
  }
  const layout::Layout& up = *at(result, tensors, "mlp.up.weight_packed").layout;
  const layout::Layout& down = *at(result, tensors, "mlp.down.weight_packed").layout;
  for (i64 rank = 0; rank < tp; ++rank) {
    const auto words = index::coarsen(up.region(rank)->at(0), per_word);
    REQUIRE(words);
    CHECK(down.region(rank)->at(1) == *words);
  }
  return true;
}

TEST_CASE("words are cut where the rows of the same axis are, or the cut is refused") {
  std::map<std::string, int> accepted;
  for (const std::string policy : {"error", "uneven-aligned", "pad", "refine"}) {
    for (const i64 per_word : {4, 8}) {
      for (i64 tp = 2; tp <= 4; ++tp) {
        for (i64 mlp = tp; mlp <= 70; ++mlp) {
          CAPTURE(policy);
          CAPTURE(per_word);
          CAPTURE(tp);
          CAPTURE(mlp);
          const bool has_padding = mlp % per_word != 0;
          if (is_cut_alike(mlp, per_word, tp, policy) && has_padding) ++accepted[policy];
        }
      }
    }
  }
  CHECK(accepted["error"] > 0);
  CHECK(accepted["uneven-aligned"] > 100);
  CHECK(accepted["pad"] > 100);
}

TEST_CASE("an axis of declared size ends inside its last word") {
  const Mapping mapping = mapping_with(R"("heads": {"mesh": "tp", "size": 3})",
                                       R"({"match": "**o.weight", "dims": [null, "heads*20"]})");
  const ModelConfig config = config_of(R"({"quantization_config": )" + pack_of(8) + "}");
  const auto tensors = words_of("o", 16, 60, 8);
  const auto result = resolve(with_quantization(mapping, &config), tensors, &config, over("tp=2"));
  CHECK(held_of(result, tensors, "o.weight_packed", 1) == Held{"[0, 5)", "[5, 8)"});
  const auto& shifts = at(result, tensors, "o.weight_shape").by->shifts;
  REQUIRE(shifts.size() == 2);
  CHECK(shifts[0].addends == std::vector<i64>{0, -20});
  CHECK(shifts[1].addends == std::vector<i64>{0, -40});
}

std::vector<TensorSpec> joined(std::vector<TensorSpec> tensors,
                               const std::vector<TensorSpec>& more) {
  tensors.insert(tensors.end(), more.begin(), more.end());
  return tensors;
}

TEST_CASE("of sizes that end in the same word, that of the weight's own module counts") {
  const auto tensors = joined(layer_of("a", 60, 8), layer_of("b", 62, 8));
  const auto result = resolved(tensors, pack_of(8), "tp=2", straddling("uneven-aligned"));
  const auto shapes = [&](const std::string& module) {
    std::vector<i64> addends;
    for (const auto& shift : at(result, tensors, module + ".down.weight_shape").by->shifts)
      addends.push_back(shift.addends.at(1));
    return addends;
  };
  CHECK(shapes("a") == std::vector<i64>{32 - 60, 28 - 60});
  CHECK(shapes("b") == std::vector<i64>{32 - 62, 30 - 62});

  const auto with_lone = joined(tensors, words_of("c.down", 16, 61, 8));
  const auto error =
      error_of([&] { return resolved(with_lone, pack_of(8), "tp=2", straddling("pad")); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kShapeMismatch);
  CHECK(error->tensor_name() == "c.down.weight");
}

TEST_CASE("an axis that no other tensor has fills all of its words") {
  const auto tensors = words_of("down", 16, 60, 8);
  const auto result = resolved(tensors, pack_of(8), "tp=2");
  CHECK(held_of(result, tensors, "down.weight_packed", 1) == Held{"[0, 4)", "[4, 8)"});
}

}  // namespace
}  // namespace shardtool::mapping
