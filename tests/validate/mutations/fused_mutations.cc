#include "tests/validate/mutations/mutations.h"

/// Faults in tensors that store queries, keys and values by groups of heads.
namespace shardtool::test {
namespace {

/// Exchanges two ranges of `size` rows in a rank's part.
std::function<void(const ShardSet&)> exchanging(const std::string& tensor, i64 rank, i64 a, i64 b,
                                                i64 size) {
  return [=](const ShardSet& shards) {
    shards.change(tensor, rank, [=](const ShardRows& rows) {
      return rows.rows_in(exchanged(rows.rows, a, b, size));
    });
  };
}

}  // namespace

std::vector<Mutation> fused_mutations() {
  return {
      over_two(
          "U1", "the key and the value of a group exchanged", "internlm2",
          {"attention.wqkv.weight: rank 0 holds rows [0, 24) [36, 48) [24, 36) instead of [0, 48)"},
          exchanging("model.layers.1.attention.wqkv.weight", 0, 24, 36, 12)),
      over_two("U2", "groups of two ranks exchanged", "internlm2",
               {"wqkv.weight: rank 0 kv head 0 holds kv head 1; rank 1 kv head 1 holds kv head 0"},
               [](const ShardSet& shards) {
                 shards.exchange("model.layers.0.attention.wqkv.weight", 0, 1);
               }),
      over_two("U3", "the gate of another layer", "internlm2",
               {"feed_forward.w1.weight: rank 1 holds layer 1's instead of layer 0's"},
               [](const ShardSet& shards) {
                 shards.exchange("model.layers.0.feed_forward.w1.weight",
                                 "model.layers.1.feed_forward.w1.weight", 1);
               }),
      over_two("U4", "values and keys of a group in the other order", "codegen",
               {"attn.qkv_proj.weight: rank 1 "},
               exchanging("transformer.h.0.attn.qkv_proj.weight", 1, 12, 24, 12)),
      over_two("U5", "queries of two groups exchanged", "codegen",
               {"attn.qkv_proj.weight: rank 0 "},
               exchanging("transformer.h.1.attn.qkv_proj.weight", 0, 0, 36, 12)),
      over_two("U6", "heads of two ranks exchanged", "gptj",
               {"attn.q_proj.weight: rank 0 holds the shard of rank 1"},
               [](const ShardSet& shards) {
                 shards.exchange("transformer.h.0.attn.q_proj.weight", 0, 1);
               }),
      over_two("U7", "the head's biases of two ranks exchanged", "gptj",
               {"lm_head.bias: rank 0 holds the shard of rank 1"},
               [](const ShardSet& shards) { shards.exchange("lm_head.bias", 0, 1); }),
      over_two("U8", "keys of a layer with a window in one without", "exaone_moe",
               {"layers.0.self_attn.k_proj.weight: rank 0 holds layer 1's instead of layer 0's"},
               [](const ShardSet& shards) {
                 shards.exchange("model.layers.0.self_attn.k_proj.weight",
                                 "model.layers.1.self_attn.k_proj.weight", 0);
               }),
      over_two(
          "U9", "the biases that choose experts exchanged", "exaone_moe",
          {"e_score_correction_bias: rank 1 element 0 holds element 3, element 3 holds element 0"},
          exchanging("model.layers.1.mlp.e_score_correction_bias", 1, 0, 3, 1), kFieldAlone),
      over_two("U10", "the learned numbers of two activations exchanged", "apertus",
               {"act_fn.alpha_n: rank 1 "},
               [](const ShardSet& shards) {
                 shards.exchange("model.layers.1.mlp.act_fn.alpha_n",
                                 "model.layers.0.mlp.act_fn.alpha_n", 1);
               }),
      over_two("U11", "sinks of two ranks exchanged", "mimo_v2_flash",
               {"attention_sink_bias: rank 0 holds the shard of rank 1"},
               [](const ShardSet& shards) {
                 shards.exchange("model.layers.1.self_attn.attention_sink_bias", 0, 1);
               }),
      over_two("U12", "values of two heads exchanged, which are narrower than keys",
               "mimo_v2_flash", {"v_proj.weight: rank 1 "},
               exchanging("model.layers.1.self_attn.v_proj.weight", 1, 0, 10, 10)),
  };
}

}  // namespace shardtool::test
