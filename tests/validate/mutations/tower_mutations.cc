#include <algorithm>
#include <numeric>

#include "tests/validate/mutations/mutations.h"

/// Faults of towers for images, and of the features that words attend to.
namespace shardtool::test {
std::vector<Mutation> tower_mutations() {
  return {
      over_mesh(
          "T1", "two heads of a tower's keys exchanged", "mistral3", "tp=2",
          {"in tower 1, linear 'k': vision_tower.transformer.layers.1.attention.k_proj.weight: "
           "rank 0 vision head 0 holds vision head 1, vision head 1 holds vision head 0"},
          [](const ShardSet& shards) {
            const std::string keys = "vision_tower.transformer.layers.1.attention.k_proj.weight";
            shards.change(keys, 0, [](const ShardRows& rows) {
              return rows.rows_in(exchanged(rows.rows, 0, 8, 8));
            });
          }),
      over_mesh("T2", "queries and keys of a fused matrix exchanged", "qwen2_5_vl", "tp=2",
                {"in tower 0, linear 'qkv': visual.blocks.0.attn.qkv.weight: rank 1 "},
                [](const ShardSet& shards) {
                  shards.change("visual.blocks.0.attn.qkv.weight", 1, [](const ShardRows& rows) {
                    return rows.rows_in(exchanged(rows.rows, 0, rows.rows / 3, rows.rows / 3));
                  });
                }),
      over_mesh("T3", "patches of a square in another order", "qwen2_vl", "tp=2",
                {"in tower end, linear 'merged': visual.merger.mlp.0.weight: rank 0 "},
                [](const ShardSet& shards) {
                  shards.change_all("visual.merger.mlp.0.weight", [](const ShardRows& rows) {
                    return rows.columns_in(exchanged(rows.columns, 24, 48, 24));
                  });
                }),
      over_mesh(
          "T4", "the height and the width of a patch exchanged", "gemma3", "tp=2",
          {"in tower start, linear 'seen': vision_tower.embeddings.patch_embedding.weight: rank "
           "0 "},
          [](const ShardSet& shards) {
            const std::string patches = "vision_tower.embeddings.patch_embedding.weight";
            shards.change_all(patches, [](ShardRows rows) {
              for (i64 r = 0; r + 1 < rows.rows; r += 2) {
                std::swap_ranges(rows.at(r, 1), rows.at(r, 2), rows.at(r + 1, 0));
              }
              return rows;
            });
          }),
      over_mesh(
          "T5", "another layer's turn to tell the language model", "qwen3_vl", "tp=2",
          {"in tower 1, linear 'told': model.visual.deepstack_merger_list.1.linear_fc2.weight: "
           "rank 0 holds layer 0's instead of layer 1's"},
          [](const ShardSet& shards) {
            const std::string told = "model.visual.deepstack_merger_list.";
            for (const i64 rank : shards.ranks_of(told + "1.linear_fc2.weight")) {
              shards.write(told + "1.linear_fc2.weight", rank,
                           shards.read(told + "0.linear_fc2.weight", rank));
            }
          }),
      over_mesh(
          "T6", "the tower ends with the matrix of what a layer tells", "qwen3_vl_moe", "tp=2",
          {"in tower end, linear 'merged': model.visual.merger.linear_fc1.weight: rank 0 2,048 "
           "of 2,048 elements differ"},
          [](const ShardSet& shards) {
            const std::string told = "model.visual.deepstack_merger_list.0.linear_fc1.weight";
            for (const i64 rank : shards.ranks_of(told)) {
              shards.write("model.visual.merger.linear_fc1.weight", rank, shards.read(told, rank));
            }
          }),
      over_mesh("T7", "rows and columns of a square of patches exchanged", "glm4v", "tp=2",
                {"in tower end, linear 'merged': model.visual.downsample.weight: rank 0 "},
                [](const ShardSet& shards) {
                  shards.change_all("model.visual.downsample.weight", [](ShardRows rows) {
                    for (i64 r = 0; r + 1 < rows.rows; r += 2) {
                      std::swap_ranges(rows.at(r, 1), rows.at(r, 2), rows.at(r + 1, 0));
                    }
                    return rows;
                  });
                }),
      over_mesh("T8", "the gate and the other half of a merger exchanged", "glm4v_moe", "tp=2",
                {"model.visual.merger.gate_proj.weight: rank 1 gate_proj holds up_proj"},
                [](const ShardSet& shards) {
                  shards.exchange("model.visual.merger.gate_proj.weight",
                                  "model.visual.merger.up_proj.weight", 1);
                }),
      over_mesh(
          "T9", "scales of what attention and MLP add exchanged", "internvl", "tp=2",
          {"in tower 1, scale 'attended_scaled': vision_tower.encoder.layer.1.lambda_1: rank 0 "},
          [](const ShardSet& shards) {
            for (const i64 rank : {0, 1}) {
              shards.exchange("vision_tower.encoder.layer.1.lambda_1",
                              "vision_tower.encoder.layer.1.lambda_2", rank);
            }
          }),
      over_mesh("T10", "places of the class and of the first patch exchanged", "internvl_qwen3",
                "tp=2", {"vision_tower.embeddings.position_embeddings: rank 0 "},
                [](const ShardSet& shards) {
                  shards.change_all("vision_tower.embeddings.position_embeddings",
                                    [](const ShardRows& rows) {
                                      return rows.rows_in(exchanged(rows.rows, 0, 1, 1));
                                    });
                }),
      over_mesh(
          "T11", "the class's place behind those of the patches", "llava", "tp=2",
          {"in tower start, embed 'where': vision_tower.embeddings.position_embedding.weight: "
           "rank 0 "},
          [](const ShardSet& shards) {
            const std::string places = "vision_tower.embeddings.position_embedding.weight";
            shards.change_all(places, [](const ShardRows& rows) {
              std::vector<i64> order(static_cast<size_t>(rows.rows));
              std::iota(order.begin(), order.end(), 1);
              order.back() = 0;
              return rows.rows_in(order);
            });
          }),
      over_mesh("T12", "nothing at the end of a line", "llava_mistral", "tp=2",
                {"in tower end, class token 'image': image_newline: rank 1 "},
                [](const ShardSet& shards) {
                  shards.change("image_newline", 1, [](ShardRows rows) {
                    std::fill_n(rows.at(0, 0), rows.columns * rows.element(), std::uint8_t{0});
                    return rows;
                  });
                }),
  };
}

}  // namespace shardtool::test
