#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/validate/mutations/mutations.h"

/// Changes of bytes or files that do not change the shards' function.
namespace shardtool::test {
namespace {

/// Permutes the features of a rank's feed-forward layer in all three matrices.
void permute_features(const ShardSet& shards) {
  for (i64 rank = 0; rank < 4; ++rank) {
    const auto order = exchanged(32, 3, 17 + rank, 5);
    const auto by_row = [&](const ShardRows& rows) { return rows.rows_in(order); };
    shards.change(kMlp + "gate_proj.weight", rank, by_row);
    shards.change(kMlp + "up_proj.weight", rank, by_row);
    shards.change(kMlp + "down_proj.weight", rank,
                  [&](const ShardRows& rows) { return rows.columns_in(order); });
  }
}

/// Exchanges the names of two ranks' files.
void rename_files(const ShardSet& shards) {
  namespace fs = std::filesystem;
  const std::string zero = shards.file(0);
  const std::string one = shards.file(1);
  fs::rename(zero, zero + "-moved");
  fs::rename(one, zero);
  fs::rename(zero + "-moved", one);
  shards.edit_manifest([](nlohmann::json& manifest) {
    auto& files = manifest["files"];
    std::swap(files[0]["name"], files[1]["name"]);
  });
}

}  // namespace

std::vector<Mutation> benign_mutations() {
  return {
      {"00", "none", "prototype", "tp=4", kBenign, {}, [](const ShardSet&) {}},
      {"34",
       "the same numbers in another dtype",
       "wide prototype",
       "tp=4",
       kBenign,
       {},
       [](const ShardSet&) {},
       [](api::ValidateOptions& options) {
         options.reference = model_folder("prototype");
         options.compares_values = true;
       }},
      {"41",
       "gate, up and down permuted consistently",
       "prototype",
       "tp=4",
       kReordered,
       {"function equal, layout differs: model.layers.0.mlp.gate_proj.weight: rank 0 holds rows "
        "[0, 3) [17, 22)"},
       permute_features},
      {"42",
       "whole FFN shards of two ranks exchanged consistently",
       "prototype",
       "tp=4",
       kBenign,
       {"function equal, layout differs: model.layers.0.mlp.gate_proj.weight: rank 0 holds the "
        "shard of rank 1"},
       [](const ShardSet& shards) {
         for (const std::string part : {"gate", "up", "down"}) {
           shards.exchange(kMlp + part + "_proj.weight", 0, 1);
         }
       }},
      {"B1",
       "the whole model in two files",
       "prototype",
       "tp=4",
       kBenign,
       {},
       [](const ShardSet&) {},
       [](api::ValidateOptions& options) {
         options.reference = model_folder("prototype in two files");
       }},
      {"B2",
       "files of two ranks under each other's names, as the manifest says",
       "prototype",
       "tp=4",
       kBenign,
       {},
       rename_files},
      {"47",
       "padding rows of the vocabulary that are not zero",
       "97 words",
       "tp=4",
       kBenign,
       {},
       [](const ShardSet& shards) {
         shards.change("lm_head.weight", 3, [](ShardRows rows) {
           rows.set_bits(rows.rows - 1, 0, 0x3f80);
           return rows;
         });
       }},
  };
}

}  // namespace shardtool::test
