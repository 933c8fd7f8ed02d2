#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/validate/mutations/mutations.h"

/// Rows of the matrix that need parts of few families: sinks, latent attention, scales, shared
/// experts, fused heads, padding.
namespace shardtool::test {
namespace {

const std::string kKvB = "model.layers.0.self_attn.kv_b_proj.weight";

/// Doubles every f32 by its exponent; zeros stay.
ShardRows doubled_f32(ShardRows rows) {
  constexpr i64 kExponent = 1 << 23;
  for (i64 i = 0; i < rows.rows * rows.columns; ++i) {
    std::uint8_t* at = rows.at(i / rows.columns, i % rows.columns);
    if (std::all_of(at, at + 3, [](std::uint8_t byte) { return byte == 0; })) continue;
    rows.add_to_bits(i / rows.columns, i % rows.columns, kExponent);
  }
  return rows;
}

/// Rotates the order of every head's rows, so that row `cut` is first.
ShardRows heads_rotated(const ShardRows& rows, i64 head, i64 cut) {
  std::vector<i64> order;
  for (i64 begin = 0; begin < rows.rows; begin += head) {
    for (i64 i = 0; i < head; ++i) order.push_back(begin + (cut + i) % head);
  }
  return rows.rows_in(order);
}

void cut_by_columns(const ShardSet& shards) {
  const ShardRows all = below_each_other(shards, kKvB);
  for (i64 rank = 0; rank < 2; ++rank) {
    ShardRows part = all.columns_in(range(10 * rank, 10 * rank + 10));
    shards.write(kKvB, rank, part);
  }
}

void cut_in_thirds(const ShardSet& shards) {
  const std::string name = "gpt_neox.layers.0.attention.query_key_value.weight";
  const ShardRows all = below_each_other(shards, name);
  for (i64 rank = 0; rank < 2; ++rank) {
    std::vector<i64> order;
    for (i64 third = 0; third < 3; ++third) {
      const auto part = range(48 * third + 24 * rank, 48 * third + 24 * rank + 24);
      order.insert(order.end(), part.begin(), part.end());
    }
    shards.write(name, rank, all.rows_in(order));
  }
}

void cut_per_head(const ShardSet& shards) {
  const std::string name = "model.layers.0.self_attn.qkv_proj.weight";
  const ShardRows a = shards.read(name, 0);
  std::vector<i64> order;
  for (i64 head = 0; head < 4; ++head) {
    for (i64 third = 0; third < 4; ++third) {
      for (i64 i = 0; i < 3; ++i) order.push_back(12 * third + 3 * head + i);
    }
  }
  shards.write(name, 0, a.rows_in(order));
}

void transpose_conv(const ShardSet& shards) {
  const std::string name = "transformer.h.0.attn.c_proj.weight";
  const ShardRows turned = below_each_other(shards, name).transposed();
  for (i64 rank = 0; rank < 2; ++rank) {
    shards.write(name, rank, turned.rows_in(range(24 * rank, 24 * rank + 24)));
  }
}

}  // namespace

std::vector<Mutation> family_mutations() {
  return {
      {"46'",
       "rank 1 starts one row early",
       "prototype",
       "tp=4",
       kFunction,
       {"up_proj.weight: rank 1 rows are shifted by -1"},
       [](const ShardSet& shards) {
         const ShardRows last = shards.read(kUp, 0).rows_in({31});
         shards.change(kUp, 1, [&](const ShardRows& rows) {
           ShardRows shifted = last;
           const ShardRows rest = rows.rows_in(range(0, rows.rows - 1));
           shifted.bytes.insert(shifted.bytes.end(), rest.bytes.begin(), rest.bytes.end());
           return shifted;
         });
       }},
      {"48",
       "tied in config, the shards hold different copies",
       "tied prototype",
       "tp=4",
       kFunction,
       {"lm_head.weight: rank 2 element [51, 7] is"},
       [](const ShardSet& shards) {
         shards.change("lm_head.weight", 2, [](ShardRows rows) {
           rows.add_to_bits(3, 7, 1);
           return rows;
         });
       }},
      {"51",
       "fp8 scales of other blocks",
       "fp8",
       "tp=2",
       kFunction,
       {"down_proj.weight_scale_inv: rank 0 holds the shard of rank 1"},
       [](const ShardSet& shards) {
         shards.exchange("model.layers.0.mlp.down_proj.weight_scale_inv", 0, 1);
       }},
      {"54",
       "MLA kv_b cut by columns instead of heads",
       "deepseek_v3",
       "tp=2",
       kFunction,
       {"kv_b_proj.weight: rank 0 ", "elements differ"},
       cut_by_columns},
      {"55",
       "MLA per-head [nope|v] order exchanged",
       "deepseek_v3",
       "tp=2",
       kFunction,
       {"kv_b_proj.weight: rank 0 holds rows [16, 28) [0, 16) [44, 56) [28, 44) instead of [0, "
        "56)"},
       [](const ShardSet& shards) {
         shards.change_all(kKvB, [](const ShardRows& rows) { return heads_rotated(rows, 28, 16); });
       }},
      {"57",
       "attention sinks cut by kv head instead of q head",
       "gpt_oss",
       "tp=2",
       kFunction,
       {"sinks: rank 1 head 2 holds head 1, head 3 holds head 2"},
       [](const ShardSet& shards) {
         const std::string sinks = "model.layers.0.self_attn.sinks";
         const ShardRows all = below_each_other(shards, sinks);
         shards.write(sinks, 1, all.rows_in({1, 2}));
       }},
      {"59",
       "expert bias added on every rank",
       "gpt_oss",
       "tp=2",
       kFunction,
       {"down_proj_bias: rank 0 is counted 2 times"},
       [](const ShardSet& shards) {
         shards.change_all("model.layers.0.mlp.experts.down_proj_bias", doubled_f32);
       }},
      {"60",
       "shared expert replicated and summed twice",
       "deepseek_v3",
       "tp=2",
       kFunction,
       {"shared_experts.down_proj.weight: rank 0 is counted 2 times"},
       [](const ShardSet& shards) {
         shards.change_all("model.layers.1.mlp.shared_experts.down_proj.weight", doubled_f32);
       }},
      {"61",
       "e_score_correction_bias lost",
       "deepseek_v3",
       "tp=2",
       kFieldAlone,
       {"e_score_correction_bias: rank 0 is all zeros"},
       [](const ShardSet& shards) {
         shards.change_all("model.layers.1.mlp.gate.e_score_correction_bias", zeros);
       }},
      {"62",
       "Conv1D (in, out) treated as (out, in)",
       "gpt2",
       "tp=2",
       kFunction,
       {"c_proj.weight: rank 0 is transposed"},
       transpose_conv},
      {"63",
       "per-head fused qkv cut as thirds",
       "gpt_neox",
       "tp=2",
       kFunction,
       {"query_key_value.weight: rank 0 holds rows [0, 24) [48, 72) [96, 120) instead of [0, 72)"},
       cut_in_thirds},
      {"63'",
       "thirds cut per head",
       "phi3",
       "tp=2",
       kFunction,
       {"qkv_proj.weight: rank 0 ", "row"},
       cut_per_head},
      {"71",
       "unequal split (9 heads over 4) with ranks exchanged",
       "nine heads",
       "tp=4",
       kFunction,
       {"q_proj.weight: rank 1 holds the shard of rank 2"},
       [](const ShardSet& shards) {
         shards.exchange("model.layers.0.self_attn.q_proj.weight", 1, 2);
       }},
      {"72",
       "padded rows of the head at the wrong end",
       "97 words",
       "tp=4",
       kFunction,
       {"lm_head.weight: rank 3 rows are shifted by -3"},
       [](const ShardSet& shards) {
         shards.change("lm_head.weight", 3, [](const ShardRows& rows) {
           std::vector<i64> order = range(rows.rows - 3, rows.rows);
           const auto rest = range(0, rows.rows - 3);
           order.insert(order.end(), rest.begin(), rest.end());
           return rows.rows_in(order);
         });
       }},
      {"G1",
       "queries of a layer without a window exchanged",
       "gemma4_text",
       "tp=2",
       kFunction,
       {"layers.1.self_attn.q_proj.weight: rank 0 holds the shard of rank 1"},
       [](const ShardSet& shards) {
         shards.exchange("model.layers.1.self_attn.q_proj.weight", 0, 1);
       }},
      {"G2",
       "the factor of another layer",
       "gemma4_text",
       "tp=2",
       kFunction,
       {"layers.1.layer_scalar: rank 1 element [0] is"},
       [](const ShardSet& shards) {
         shards.write("model.layers.1.layer_scalar", 1,
                      shards.read("model.layers.0.layer_scalar", 1));
       }},
      {"G3",
       "factors of two experts exchanged",
       "gemma4_moe",
       "tp=2",
       kFunction,
       {"per_expert_scale: rank 1 element 0 holds element 1, element 1 holds element 0"},
       [](const ShardSet& shards) {
         shards.change("model.layers.0.router.per_expert_scale", 1, [](const ShardRows& rows) {
           return rows.rows_in({1, 0, 2, 3});
         });
       }},
      {"G4",
       "keys that later layers share are another layer's",
       "gemma4_e2b",
       "tp=2",
       kFunction,
       {"layers.1.self_attn.k_proj.weight: rank 1 holds"},
       [](const ShardSet& shards) {
         shards.exchange("model.layers.1.self_attn.k_proj.weight",
                         "model.layers.0.self_attn.k_proj.weight", 1);
       }},
      {"G5",
       "words of two layers exchanged",
       "gemma4_e2b",
       "tp=2",
       kFunction,
       {"embed_tokens_per_layer.weight: rank 0 holds columns [10, 20) [0, 10) [20, 50)"},
       [](const ShardSet& shards) {
         shards.change("model.embed_tokens_per_layer.weight", 0, [](const ShardRows& rows) {
           return rows.columns_in(exchanged(rows.columns, 0, 10, 10));
         });
       }},
      {"G6",
       "factors of two streams exchanged",
       "gemma3n_text",
       "tp=2",
       kFunction,
       {"altup.prediction_coefs.weight: rank 1 holds rows [0, 4) [8, 12) [4, 8) [12, 16)"},
       [](const ShardSet& shards) {
         shards.change("model.layers.2.altup.prediction_coefs.weight", 1,
                       [](const ShardRows& rows) { return rows.rows_in(exchanged(16, 4, 8, 4)); });
       }},
      {"G7",
       "gates that are cut off are another layer's",
       "gemma3n_text",
       "tp=2",
       kFunction,
       {"layers.0.mlp.gate_proj.weight: rank 0 holds"},
       [](const ShardSet& shards) {
         shards.exchange("model.layers.0.mlp.gate_proj.weight",
                         "model.layers.2.mlp.gate_proj.weight", 0);
       }},
      {"C1",
       "keys and values of a fused tensor exchanged",
       "chatglm",
       "tp=2",
       kFunction,
       {"query_key_value.weight: rank 0 "},
       [](const ShardSet& shards) {
         shards.change(
             "transformer.encoder.layers.1.self_attention.query_key_value.weight", 0,
             [](const ShardRows& rows) { return rows.rows_in(exchanged(64, 32, 48, 16)); });
       }},
      {"C2",
       "gate and up exchanged",
       "chatglm",
       "tp=2",
       kFunction,
       {"dense_h_to_4h.weight: rank 1 "},
       [](const ShardSet& shards) {
         shards.change(
             "transformer.encoder.layers.0.mlp.dense_h_to_4h.weight", 1,
             [](const ShardRows& rows) { return rows.rows_in(exchanged(80, 0, 40, 40)); });
       }},
  };
}

std::vector<Untested> untested_mutations() {
  return {
      {"53", "MXFP4 blocks cut inside a 32-block",
       "`split` refuses the cut, and shards without a manifest are read as the mapping cuts them"},
      {"56", "QK norm over the full width normalised per shard",
       "a mistake of an engine's program: the shards that it loads are right"},
      {"58", "ALiBi slopes computed from the local head",
       "a mistake of an engine's program: slopes are not stored"},
      {"75", "dW of a row-parallel layer reduced twice",
       "shards hold no gradients; the demonstration of the backward pass has this fault"},
  };
}

}  // namespace shardtool::test
