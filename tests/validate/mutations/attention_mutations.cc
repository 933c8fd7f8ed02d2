#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/validate/mutations/mutations.h"

/// Rows of the matrix about q, k, v, o and norms of heads. With the prototype over tp = 4 every
/// rank has two query heads, and ranks 0 and 1 share KV head 0.
namespace shardtool::test {
namespace {

const std::string kQ = "model.layers.0.self_attn.q_proj";
const std::string kK = "model.layers.0.self_attn.k_proj";
const std::string kV = "model.layers.0.self_attn.v_proj";
constexpr i64 kHeadRows = 16;

/// Puts the even rows of every head first, as a conversion of models with interleaved rotation
/// does.
ShardRows evens_first(const ShardRows& rows) {
  std::vector<i64> order;
  for (i64 head = 0; head < rows.rows; head += kHeadRows) {
    for (i64 i = 0; i < kHeadRows; ++i) {
      order.push_back(head + (i < kHeadRows / 2 ? 2 * i : 2 * (i - kHeadRows / 2) + 1));
    }
  }
  return rows.rows_in(order);
}

/// Exchanges the halves of every head.
ShardRows halves_exchanged(const ShardRows& rows) {
  std::vector<i64> order;
  for (i64 head = 0; head < rows.rows; head += kHeadRows) {
    for (i64 i = 0; i < kHeadRows; ++i) order.push_back(head + (i + kHeadRows / 2) % kHeadRows);
  }
  return rows.rows_in(order);
}

void swap_heads(const ShardSet& shards) {
  for (const std::string part : {".weight", ".bias"}) {
    shards.change(kQ + part, 1, [](const ShardRows& q) {
      return q.rows_in(exchanged(q.rows, 0, kHeadRows, kHeadRows));
    });
  }
}

}  // namespace

std::vector<Mutation> attention_mutations() {
  return {
      {"01",
       "two q heads swapped inside a rank",
       "prototype",
       "tp=4",
       kFunction,
       {"q_proj.weight: rank 1 head 2 holds head 3, head 3 holds head 2"},
       swap_heads},
      {"02",
       "q shards of ranks 0 and 1 exchanged",
       "prototype",
       "tp=4",
       kFunction,
       {"rank 0 holds the shard of rank 1", "rank 1 holds the shard of rank 0"},
       [](const ShardSet& shards) { shards.exchange(kQ + ".weight", 0, 1); }},
      {"03",
       "kv replica taken from the wrong kv head",
       "prototype",
       "tp=4",
       kFunction,
       {"rank 1 kv head 0 holds kv head 1"},
       [](const ShardSet& shards) {
         for (const std::string& name : {kK, kV}) {
           shards.write(name + ".weight", 1, shards.read(name + ".weight", 2));
           shards.write(name + ".bias", 1, shards.read(name + ".bias", 2));
         }
       }},
      {"04",
       "only K from the wrong kv head",
       "prototype",
       "tp=4",
       kFunction,
       {"k_proj.weight: rank 1 kv head 0 holds kv head 1"},
       [](const ShardSet& shards) {
         shards.write(kK + ".weight", 1, shards.read(kK + ".weight", 2));
       }},
      {"05",
       "o columns permuted by one head",
       "prototype",
       "tp=4",
       kFunction,
       {"o_proj.weight: rank 2 head 4 holds head 5, head 5 holds head 4"},
       [](const ShardSet& shards) {
         shards.change(kO + ".weight", 2, [](const ShardRows& o) {
           return o.columns_in(exchanged(o.columns, 0, kHeadRows, kHeadRows));
         });
       }},
      {"06",
       "o shards of two ranks exchanged",
       "prototype",
       "tp=4",
       kFunction,
       {"o_proj.weight: rank 1 holds the shard of rank 2"},
       [](const ShardSet& shards) { shards.exchange(kO + ".weight", 1, 2); }},
      {"07",
       "q bias missing on one rank",
       "prototype",
       "tp=4",
       kFunction,
       {"q_proj.bias: rank 3 is all zeros"},
       [](const ShardSet& shards) { shards.change(kQ + ".bias", 3, zeros); }},
      {"08",
       "k bias missing on all ranks (RoPE model)",
       "prototype",
       "tp=4",
       kFunction,
       {"k_proj.bias: rank 0 is all zeros; rank 1 is all zeros"},
       [](const ShardSet& shards) { shards.change_all(kK + ".bias", zeros); }},
      {"08'",
       "the same where neither RoPE nor a norm shows it",
       "gpt2",
       "tp=2",
       kFieldAndRounding,
       {"attn.c_attn.bias: rank 0 elements [48, 72) are zero"},
       [](const ShardSet& shards) {
         shards.change_all("transformer.h.0.attn.c_attn.bias", [](ShardRows bias) {
           for (i64 i = bias.rows / 3; i < 2 * bias.rows / 3; ++i) bias.set_bits(i, 0, 0);
           return bias;
         });
       }},
      {"09",
       "v bias missing on one rank",
       "prototype",
       "tp=4",
       kFunction,
       {"v_proj.bias: rank 2 is all zeros"},
       [](const ShardSet& shards) { shards.change(kV + ".bias", 2, zeros); }},
      {"10",
       "o bias added on every rank",
       "prototype",
       "tp=4",
       kFunction,
       {"o_proj.bias: is counted 4 times"},
       [](const ShardSet& shards) {
         shards.edit_manifest([](nlohmann::json& manifest) {
           manifest["tensors"][kO + ".bias"]["bias"] = "first_device";
         });
       }},
      {"11",
       "o bias missing",
       "prototype",
       "tp=4",
       kFunction,
       {"o_proj.bias: rank 0 is all zeros"},
       [](const ShardSet& shards) { shards.change_all(kO + ".bias", zeros); }},
      {"18",
       "last row of a q shard duplicates its neighbour",
       "prototype",
       "tp=4",
       kFunction,
       {"q_proj.weight: rank 1 row 63 holds row 62"},
       [](const ShardSet& shards) {
         shards.change(kQ + ".weight", 1, [](const ShardRows& q) {
           auto order = range(0, q.rows);
           order.back() = q.rows - 2;
           return q.rows_in(order);
         });
       }},
      {"20",
       "norm weight rotated on one rank only",
       "prototype",
       "tp=4",
       kFunction,
       {"input_layernorm.weight: rank 2 holds elements [1, 64) [0, 1) instead of [0, 64)"},
       [](const ShardSet& shards) {
         shards.change("model.layers.0.input_layernorm.weight", 2, [](const ShardRows& norm) {
           auto order = range(1, norm.rows);
           order.push_back(0);
           return norm.rows_in(order);
         });
       }},
      {"21",
       "the two norms of a layer exchanged",
       "prototype",
       "tp=4",
       kFunction,
       {"rank 0 input_layernorm holds post_attention_layernorm"},
       [](const ShardSet& shards) {
         for (i64 rank = 0; rank < 4; ++rank) {
           shards.exchange("model.layers.0.input_layernorm.weight",
                           "model.layers.0.post_attention_layernorm.weight", rank);
         }
       }},
      {"22",
       "q and k rows permuted from interleaved to halves",
       "prototype",
       "tp=4",
       kFunction,
       {"rows of every head are in halves instead of interleaved"},
       [](const ShardSet& shards) {
         for (const std::string& name : {kQ, kK}) {
           shards.change_all(name + ".weight", evens_first);
           shards.change_all(name + ".bias", evens_first);
         }
       }},
      {"23",
       "only k permuted that way on one rank",
       "prototype",
       "tp=4",
       kFunction,
       {"k_proj.weight: rank 3 rows of every kv head are in halves instead of interleaved"},
       [](const ShardSet& shards) { shards.change(kK + ".weight", 3, evens_first); }},
      // Rotates in the opposite direction. A query that only attends to its own position has the
      // same score, so a window of one token would hide the fault.
      {"A1",
       "halves of every head's q and k exchanged alike, in a model with a window",
       "mistral",
       "tp=2",
       kFunction,
       {"q_proj.weight"},
       [](const ShardSet& shards) {
         for (const std::string& name : {kQ, kK})
           shards.change_all(name + ".weight", halves_exchanged);
       }},
      {"32",
       "attention of two layers exchanged",
       "prototype",
       "tp=4",
       kFunction,
       {"q_proj.weight: rank 0 holds layer 2's instead of layer 0's"},
       [](const ShardSet& shards) {
         for (const std::string part : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
           for (i64 rank = 0; rank < 4; ++rank) {
             shards.exchange("model.layers.0.self_attn." + part + ".weight",
                             "model.layers.2.self_attn." + part + ".weight", rank);
           }
         }
       }},
      {"37",
       "stacked qkv cut contiguously",
       "phi3",
       "tp=2",
       kFunction,
       {"qkv_proj.weight: rank 0 holds rows [0, 48) instead of [0, 24) [48, 60) [72, 84)"},
       [](const ShardSet& shards) {
         const std::string name = "model.layers.0.self_attn.qkv_proj.weight";
         const ShardRows a = shards.read(name, 0);
         const ShardRows b = shards.read(name, 1);
         ShardRows all = a;  // q0 k0 v0 q1 k1 v1 -> q0 q1 k0 k1 v0 v1
         all.bytes.insert(all.bytes.end(), b.bytes.begin(), b.bytes.end());
         all.rows = 96;
         std::vector<i64> order = range(0, 24);
         for (const i64 begin : {48, 24, 72, 36, 84}) {
           const auto part = range(begin, begin + (begin == 48 ? 24 : 12));
           order.insert(order.end(), part.begin(), part.end());
         }
         const ShardRows whole = all.rows_in(order);
         shards.write(name, 0, whole.rows_in(range(0, 48)));
         shards.write(name, 1, whole.rows_in(range(48, 96)));
       }},
      {"39",
       "q-norm and k-norm weights exchanged",
       "prototype",
       "tp=4",
       kFunction,
       {"rank 0 q_norm holds k_norm"},
       [](const ShardSet& shards) {
         for (i64 rank = 0; rank < 4; ++rank) {
           shards.exchange("model.layers.0.self_attn.q_norm.weight",
                           "model.layers.0.self_attn.k_norm.weight", rank);
         }
       }},
  };
}

}  // namespace shardtool::test
