// Experts in Megatron's checkpoints with a file per rank.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <cstring>

#include "tests/layouts/rank_files.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::api {

using test::Bytes;
using test::TempFolder;
using test::Tensors;

namespace {

/// Ranks of a model with experts, of one layer per stage.
struct ExpertRanks {
  i64 tp = 1, pp = 1, ep = 1;
  i64 experts = 1;          ///< per rank of ep
  i64 ffn = 1;              ///< of an expert, per rank of tp
  bool is_grouped = false;  ///< named as TransformerEngine's grouped layer
};

std::string expert_name(const ExpertRanks& ranks, i64 expert, const std::string& layer) {
  return ranks.is_grouped ? fmt::format("mlp.experts.{}.weight{}", layer, expert)
                          : fmt::format("mlp.experts.local_experts.{}.{}.weight", expert, layer);
}

/// Experts [rows, 1], so that a part of rows or columns is a range of the bytes.
Tensors whole_experts(const ExpertRanks& ranks) {
  Tensors whole;
  std::int32_t next = 0;
  const auto add = [&](const std::string& name, const Shape& shape) {
    Bytes bytes(static_cast<size_t>(element_count(shape).value() * 4));
    for (size_t i = 0; i < bytes.size(); i += 4) std::memcpy(&bytes[i], &++next, 4);
    whole[name] = f32(name, shape, std::move(bytes));
  };
  add("model.norm.weight", {2});
  for (i64 layer = 0; layer < ranks.pp; ++layer) {
    const std::string mlp = fmt::format("model.layers.{}.mlp.", layer);
    add(mlp + "gate.weight", {ranks.ep * ranks.experts, 1});
    for (i64 e = 0; e < ranks.ep * ranks.experts; ++e) {
      const std::string expert = fmt::format("{}experts.{}.", mlp, e);
      add(expert + "gate_proj.weight", {ranks.ffn * ranks.tp, 1});
      add(expert + "up_proj.weight", {ranks.ffn * ranks.tp, 1});
      add(expert + "down_proj.weight", {1, ranks.ffn * ranks.tp});
    }
  }
  return whole;
}

Tensors experts_of_rank(const ExpertRanks& ranks, const Tensors& whole, i64 tp, i64 pp, i64 ep) {
  Tensors rank;
  const auto add = [&rank](const std::string& name, const Shape& shape, Bytes bytes) {
    rank[name] = f32(name, shape, std::move(bytes));
  };
  const auto part = [&](const std::string& name) {
    const auto at = whole.at(name).bytes.begin();
    return Bytes(at + tp * ranks.ffn * 4, at + (tp + 1) * ranks.ffn * 4);
  };
  const std::string last = "decoder.final_layernorm.weight";
  if (pp + 1 == ranks.pp) add(last, {2}, whole.at("model.norm.weight").bytes);
  const std::string mlp = fmt::format("model.layers.{}.mlp.", pp);
  const std::string layer = "decoder.layers.0.";
  add(layer + "mlp.router.weight", {ranks.ep * ranks.experts, 1},
      whole.at(mlp + "gate.weight").bytes);
  for (i64 e = 0; e < ranks.experts; ++e) {
    const std::string expert = fmt::format("{}experts.{}.", mlp, ep * ranks.experts + e);
    Bytes gate_up = part(expert + "gate_proj.weight");
    append(gate_up, part(expert + "up_proj.weight"));
    add(layer + expert_name(ranks, e, "linear_fc1"), {2 * ranks.ffn, 1}, std::move(gate_up));
    add(layer + expert_name(ranks, e, "linear_fc2"), {1, ranks.ffn},
        part(expert + "down_proj.weight"));
  }
  return rank;
}

void write_expert_ranks(const TempFolder& folder, const ExpertRanks& ranks, const Tensors& whole) {
  for (i64 tp = 0; tp < ranks.tp; ++tp) {
    for (i64 pp = 0; pp < ranks.pp; ++pp) {
      for (i64 ep = 0; ep < ranks.ep; ++ep) {
        std::string name = fmt::format("mp_rank_{:02}", tp);
        if (ranks.pp > 1) name += fmt::format("_{:03}", pp);
        if (ranks.ep > 1) name += fmt::format("_{:03}", ep);
        folder.write("iter/" + name + "/model_optim_rng.pt",
                     rank_file({{"model", experts_of_rank(ranks, whole, tp, pp, ep)}}, {}));
      }
    }
  }
  folder.write("iter/config.json", R"({"model_type": "qwen3_moe"})");
}

}  // namespace

TEST_CASE("experts of any ranks merge to the model they are of") {
  rc::check("", [] {
    const ExpertRanks ranks{*gen::between(1, 2), *gen::between(1, 3), *gen::between(1, 3),
                            *gen::between(1, 3), *gen::between(1, 2), *rc::gen::arbitrary<bool>()};
    const TempFolder folder;
    const Tensors whole = whole_experts(ranks);
    write_expert_ranks(folder, ranks, whole);
    const Tensors merged = merged_ranks(folder);
    RC_ASSERT(merged.size() == whole.size());
    for (const auto& [name, tensor] : whole) {
      RC_ASSERT(merged.at(name).spec.shape == tensor.spec.shape);
      RC_ASSERT(merged.at(name).bytes == tensor.bytes);
    }
  });
}

TEST_CASE("ranks of ep with different numbers of experts are refused") {
  const ExpertRanks ranks{1, 1, 2, 2, 1, false};
  const ExpertRanks fewer{1, 1, 2, 1, 1, false};
  const TempFolder folder;
  write_expert_ranks(folder, ranks, whole_experts(ranks));
  const auto other = experts_of_rank(fewer, whole_experts(fewer), 0, 0, 1);
  folder.write("iter/mp_rank_00_001/model_optim_rng.pt", rank_file({{"model", other}}, {}));
  const auto error = testing::error_of([&] { merged_ranks(folder); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kCoverage);
  CHECK(error->message() == "the ranks of ep have different numbers of experts");
}

}  // namespace shardtool::api
