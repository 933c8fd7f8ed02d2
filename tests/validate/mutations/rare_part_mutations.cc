#include "tests/validate/mutations/mutations.h"

/// Faults of parts that few families have.
namespace shardtool::test {
namespace {

using Apply = std::function<void(const ShardSet&)>;

/// Exchanges the parts of two ranks.
Apply of_ranks(const std::string& tensor) {
  return [=](const ShardSet& shards) { shards.exchange(tensor, 0, 1); };
}

/// Exchanges two tensors of a rank.
Apply of_tensors(const std::string& one, const std::string& other, i64 rank) {
  return [=](const ShardSet& shards) { shards.exchange(one, other, rank); };
}

const std::string kFirst = "model.layers.0.";
const std::string kSecond = "model.layers.1.";
const std::string kThird = "model.layers.2.";
/// No run reads this word or the next one.
constexpr i64 kUnsaidWord = 20;
/// The rows for kept streams follow those for reading and writing.
constexpr i64 kKept = 8;

}  // namespace

std::vector<Mutation> rare_part_mutations() {
  return {
      over_two("L1", "a shared expert's features of two ranks exchanged", "hy_v3",
               {"mlp.shared_mlp.up_proj.weight: rank 0 holds the shard of rank 1"},
               of_ranks(kSecond + "mlp.shared_mlp.up_proj.weight")),
      over_two("L2", "gates of two ranks' heads exchanged", "afmoe",
               {"self_attn.gate_proj.weight: rank 0 "},
               of_ranks(kFirst + "self_attn.gate_proj.weight")),
      over_two("L3", "a gate of heads in place of queries", "afmoe",
               {"self_attn.q_proj.weight: rank 1 q_proj holds gate_proj"},
               of_tensors(kSecond + "self_attn.q_proj.weight",
                          kSecond + "self_attn.gate_proj.weight", 1)),
      over_two(
          "L4", "values of another layer", "solar_open",
          {"self_attn.v_proj.weight: rank 0 holds layer 1's instead of layer 0's"},
          of_tensors(kFirst + "self_attn.v_proj.weight", kSecond + "self_attn.v_proj.weight", 0)),
      over_two(
          "L5", "keys of a layer with a window in one without", "cwm",
          {"self_attn.k_proj.weight: rank 1 holds layer 1's instead of layer 0's"},
          of_tensors(kFirst + "self_attn.k_proj.weight", kSecond + "self_attn.k_proj.weight", 1)),
      over_two("L6", "norms behind attention and experts exchanged", "flex_olmo",
               {"post_attention_layernorm.weight: rank 0 "},
               of_tensors(kFirst + "post_attention_layernorm.weight",
                          kFirst + "post_feedforward_layernorm.weight", 0)),
      over_two("L7", "heads' keys and values of two ranks exchanged", "minicpm3",
               {"self_attn.kv_b_proj.weight: rank 0 "},
               of_ranks(kFirst + "self_attn.kv_b_proj.weight")),
      over_two("L8", "queries of another layer", "youtu",
               {"self_attn.q_b_proj.weight: rank 0 holds layer 1's instead of layer 0's"},
               of_tensors(kFirst + "self_attn.q_b_proj.weight",
                          kSecond + "self_attn.q_b_proj.weight", 0)),
      over_two(
          "L9", "biases of two norms exchanged", "jais2", {"input_layernorm.bias: rank 1 "},
          of_tensors(kFirst + "input_layernorm.bias", kFirst + "post_attention_layernorm.bias", 1)),
      over_two("L10", "queries of two ranks' heads exchanged", "helium",
               {"self_attn.q_proj.weight: rank 0 "}, of_ranks(kSecond + "self_attn.q_proj.weight")),
      over_two("L11", "norms before attention and MLP exchanged", "vaultgemma",
               {"input_layernorm.weight: rank 0 "},
               of_tensors(kFirst + "input_layernorm.weight",
                          kFirst + "pre_feedforward_layernorm.weight", 0)),
      over_two("L12", "norms behind attention and MLP exchanged", "hyperclovax",
               {"post_norm1.weight: rank 0 post_norm1 holds post_norm2"},
               of_tensors(kSecond + "post_norm1.weight", kSecond + "post_norm2.weight", 0)),
      over_two("L13", "keys of a layer with a window in one without", "gpt_neo",
               {"attention.k_proj.weight: rank 0 holds layer 0's instead of layer 1's"},
               of_tensors("transformer.h.1.attn.attention.k_proj.weight",
                          "transformer.h.0.attn.attention.k_proj.weight", 0)),
      over_two("L14", "norms of queries and keys exchanged", "persimmon",
               {"q_layernorm.weight: rank 0 q_layernorm holds k_layernorm"},
               of_tensors(kFirst + "self_attn.q_layernorm.weight",
                          kFirst + "self_attn.k_layernorm.weight", 0)),
      over_two("L15", "features of an MLP of two ranks exchanged", "xglm",
               {"fc1.weight: rank 0 holds the shard of rank 1"}, of_ranks(kSecond + "fc1.weight")),
      over_two("L16", "norms before attention and MLP exchanged", "biogpt",
               {"self_attn_layer_norm.weight: rank 0 self_attn_layer_norm holds final_layer_norm"},
               of_tensors("biogpt.layers.1.self_attn_layer_norm.weight",
                          "biogpt.layers.1.final_layer_norm.weight", 0)),
      over_two("L17", "a norm behind attention of two ranks' heads exchanged", "bitnet",
               {"attn_sub_norm.weight: rank 0 holds the shard of rank 1"},
               of_ranks(kFirst + "self_attn.attn_sub_norm.weight")),
      over_two("L18", "sinks of two ranks' heads exchanged", "granite_swa",
               {"self_attn.sinks: rank 0 "}, of_ranks(kSecond + "self_attn.sinks")),
      over_two("L19", "what an MLP makes of two ranks' features exchanged", "nanochat",
               {"mlp.fc2.weight: rank 0 holds the shard of rank 1"},
               of_ranks(kSecond + "mlp.fc2.weight")),
      over_two(
          "L20", "keys of a dense layer in one of experts", "cohere2_moe",
          {"self_attn.k_proj.weight: rank 1 holds layer 1's instead of layer 0's"},
          of_tensors(kFirst + "self_attn.k_proj.weight", kSecond + "self_attn.k_proj.weight", 1)),
      over_two("L21", "convolutions of two ranks' heads of keys exchanged", "olmo_hybrid",
               {"linear_attn.k_conv1d.weight: rank 0 "},
               of_ranks(kFirst + "linear_attn.k_conv1d.weight")),
      over_two("L22", "keys and values of a layer's second attention in its first", "longcat_flash",
               {"self_attn.0.kv_b_proj.weight: rank 1 "},
               of_tensors(kFirst + "self_attn.0.kv_b_proj.weight",
                          kFirst + "self_attn.1.kv_b_proj.weight", 1)),
      over_two("L23", "gates of two ranks' heads exchanged", "bailing_hybrid",
               {"attention.g_proj.weight: rank 0 "}, of_ranks(kSecond + "attention.g_proj.weight")),
      over_two("L24", "what a head's numbers forget is another's", "bailing_hybrid",
               {"attention.dt_bias: rank 0 "}, of_ranks(kFirst + "attention.dt_bias")),
      over_two("L25", "gates of two ranks' heads exchanged", "laguna",
               {"self_attn.g_proj.weight: rank 0 "}, of_ranks(kSecond + "self_attn.g_proj.weight")),
      over_two("L26", "what streams give to attention and to an MLP exchanged", "hy_v4",
               {"hc_pre.hc_attn_layer.hc_base: rank 0 "},
               of_tensors(kSecond + "hc_pre.hc_attn_layer.hc_base",
                          kSecond + "hc_pre.hc_mlp_layer.hc_base", 0)),
      over_two("L27", "sinks of two ranks' heads exchanged", "hy_v4",
               {"self_attn.learnable_sink_param: rank 0 "},
               of_ranks(kFirst + "self_attn.learnable_sink_param")),
      over_two("L28", "factors of streams before attention and before experts exchanged", "hy_v4",
               {"hc_fn: rank 0 hc_attn_layer holds hc_mlp_layer"},
               of_tensors(kSecond + "hc_pre.hc_attn_layer.hc_fn",
                          kSecond + "hc_pre.hc_mlp_layer.hc_fn", 0)),
      over_two("L29", "scales of streams before attention and before experts exchanged", "hy_v4",
               {"hc_scale: rank 1 "},
               of_tensors(kFirst + "hc_pre.hc_attn_layer.hc_scale",
                          kFirst + "hc_pre.hc_mlp_layer.hc_scale", 1)),
      over_two("L30", "an index of another layer, which a second one shares", "glm_moe_dsa_taken",
               {"indexer.wk.weight: rank 0 holds layer 2's instead of layer 0's"},
               of_tensors(kFirst + "self_attn.indexer.wk.weight",
                          "model.layers.2.self_attn.indexer.wk.weight", 0)),
      over_two("L31", "gates of two ranks' heads exchanged", "hy_v4",
               {"self_attn.linear_gate.weight: rank 0 "},
               of_ranks(kSecond + "self_attn.linear_gate.weight")),
      over_two("L32", "words' experts of another layer", "deepseek_v4",
               {"ffn.gate.tid2eid: rank 0 holds layer 2's instead of layer 0's"},
               of_tensors(kFirst + "ffn.gate.tid2eid", kThird + "ffn.gate.tid2eid", 0)),
      over_two(
          "L33", "experts of two words that no prompt has exchanged", "deepseek_v4",
          {"ffn.gate.tid2eid: rank 1 "},
          [](const ShardSet& shards) {
            shards.change(kFirst + "ffn.gate.tid2eid", 1, [](ShardRows rows) {
              return rows.rows_in(exchanged(rows.rows, kUnsaidWord, kUnsaidWord + 1, 1));
            });
          },
          kFieldAlone),
      over_two("L34", "output projections of two ranks' groups exchanged", "deepseek_v4",
               {"attn.wo_a.weight: rank 0 group 0 holds group 1"},
               of_ranks(kSecond + "attn.wo_a.weight")),
      over_two("L35", "what an entry is made of and its scores exchanged", "deepseek_v4",
               {"attn.compressor.wkv.weight: rank 0 wkv holds wgate"},
               of_tensors(kSecond + "attn.compressor.wgate.weight",
                          kSecond + "attn.compressor.wkv.weight", 0)),
      over_two("L36", "numbers of two taps of an entry exchanged", "deepseek_v4",
               {"attn.compressor.ape: rank 1 "},
               [](const ShardSet& shards) {
                 shards.change(kThird + "attn.compressor.ape", 1, [](ShardRows rows) {
                   return rows.rows_in(exchanged(rows.rows, 1, 3, 1));
                 });
               }),
      over_two(
          "L37", "norms of keys and of entries exchanged", "deepseek_v4_flash",
          {"attn.kv_norm.weight: rank 0 "},
          of_tensors("layers.0.attn.kv_norm.weight", "layers.0.attn.compressor.norm.weight", 0)),
      over_two("L38", "what two streams keep of each other exchanged", "deepseek_v4",
               {"hc_ffn_fn: rank 0 "},
               [](const ShardSet& shards) {
                 shards.change(kSecond + "hc_ffn_fn", 0, [](ShardRows rows) {
                   return rows.rows_in(exchanged(rows.rows, kKept + 1, kKept + 4, 1));
                 });
               }),
      over_two("L50", "a correction of another layer's router", "kolibri1",
               {"moe.router.expert_bias: rank 0 holds layer 1's instead of layer 0's"},
               of_tensors(kFirst + "moe.router.expert_bias", kSecond + "moe.router.expert_bias", 0),
               kFieldAlone),
      over_two("L51", "queries and gates of two ranks' heads exchanged", "axk2",
               {"self_attn.q_b_proj.weight: rank 0 "},
               of_ranks(kFirst + "self_attn.q_b_proj.weight")),
      over_two("L52", "gates of two ranks' heads exchanged where there is a window", "dots3_note",
               {"self_attn.g_proj.weight: rank 0 "}, of_ranks(kSecond + "self_attn.g_proj.weight")),
      over_two(
          "L53", "norms behind attention and MLP exchanged", "lfm3",
          {"post_operator_norm.weight: rank 1 post_operator_norm holds post_ffn_norm"},
          of_tensors(kSecond + "post_operator_norm.weight", kSecond + "post_ffn_norm.weight", 1)),
  };
}

}  // namespace shardtool::test
