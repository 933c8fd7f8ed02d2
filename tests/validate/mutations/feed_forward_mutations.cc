#include <algorithm>

#include "tests/validate/mutations/mutations.h"

/// Rows of the matrix about feed-forward layers, experts, the embedding and the head.
namespace shardtool::test {
namespace {

const std::string kExperts = "model.layers.1.mlp.experts.";
const std::string kEmbedding = "model.embed_tokens.weight";
const std::string kLmHead = "lm_head.weight";

/// Shifts the first line of every rank's part; the last rank repeats its own end.
void shift_columns(const ShardSet& shards, const std::string& name, i64 rank) {
  ShardRows next = shards.read(name, rank + 1).transposed();
  shards.change(name, rank, [&](const ShardRows& rows) {
    ShardRows lines = rows.transposed().rows_in(range(1, rows.columns));
    const ShardRows first = next.rows_in({0});
    lines.bytes.insert(lines.bytes.end(), first.bytes.begin(), first.bytes.end());
    ++lines.rows;
    return lines.transposed();
  });
}

void shift_rows(const ShardSet& shards, const std::string& name, i64 rank) {
  const ShardRows first = shards.read(name, rank + 1).rows_in({0});
  shards.change(name, rank, [&](const ShardRows& rows) {
    ShardRows lines = rows.rows_in(range(1, rows.rows));
    lines.bytes.insert(lines.bytes.end(), first.bytes.begin(), first.bytes.end());
    ++lines.rows;
    return lines;
  });
}

void exchange_experts(const ShardSet& shards) {
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"}) {
    const ShardRows zero = shards.read(kExperts + "0." + part + ".weight", 0);
    shards.write(kExperts + "0." + part + ".weight", 0,
                 shards.read(kExperts + "1." + part + ".weight", 1));
    shards.write(kExperts + "1." + part + ".weight", 1, zero);
  }
}

}  // namespace

std::vector<Mutation> feed_forward_mutations() {
  return {
      {"12",
       "gate and up exchanged on one rank",
       "prototype",
       "tp=4",
       kFunction,
       {"rank 2 gate_proj holds up_proj"},
       [](const ShardSet& shards) {
         shards.exchange(kMlp + "gate_proj.weight", kMlp + "up_proj.weight", 2);
       }},
      {"13",
       "fused gate_up cut as one contiguous block",
       "phi3",
       "tp=2",
       kFunction,
       {"gate_up_proj.weight: rank 0 holds rows [0, 80) instead of [0, 40) [80, 120)"},
       [](const ShardSet& shards) {
         const std::string name = "model.layers.0.mlp.gate_up_proj.weight";
         const ShardRows a = shards.read(name, 0);
         const ShardRows b = shards.read(name, 1);
         const auto half = [](const ShardRows& rows, i64 which) {
           return rows.rows_in(range(40 * which, 40 * which + 40));
         };
         for (const i64 rank : {0, 1}) {
           ShardRows rows = half(a, rank);
           const ShardRows rest = half(b, rank);
           rows.bytes.insert(rows.bytes.end(), rest.bytes.begin(), rest.bytes.end());
           shards.write(name, rank, rows);
         }
       }},
      {"14",
       "down columns shifted by one",
       "prototype",
       "tp=4",
       kFunction,
       {"down_proj.weight: rank 1 columns are shifted by +1"},
       [](const ShardSet& shards) { shift_columns(shards, kMlp + "down_proj.weight", 1); }},
      {"15",
       "down shards of two ranks exchanged",
       "prototype",
       "tp=4",
       kFunction,
       {"down_proj.weight: rank 0 holds the shard of rank 3"},
       [](const ShardSet& shards) { shards.exchange(kMlp + "down_proj.weight", 0, 3); }},
      {"24",
       "vocab shard off by one row",
       "prototype",
       "tp=4",
       kFunction,
       {"embed_tokens.weight: rank 1 rows are shifted by +1"},
       [](const ShardSet& shards) { shift_rows(shards, kEmbedding, 1); }},
      {"25",
       "embedding row that no token uses corrupted",
       "prototype",
       "tp=4",
       kFieldAlone,
       {"embed_tokens.weight: rank 0 element [0, 5] is"},
       [](const ShardSet& shards) {
         shards.change(kEmbedding, 0, [](ShardRows rows) {
           rows.set_bits(0, 5, 0x4040);
           return rows;
         });
       }},
      {"26",
       "head gathered in the wrong rank order",
       "prototype",
       "tp=4",
       kFunction,
       {"lm_head.weight: rank 0 holds the shard of rank 1"},
       [](const ShardSet& shards) { shards.exchange(kLmHead, 0, 1); }},
      {"27",
       "stale head copy, 1 ulp on 5 % of one shard",
       "prototype",
       "tp=4",
       kFunction,
       {"lm_head.weight: rank 2 76 elements differ by at most 1 ulp"},
       [](const ShardSet& shards) {
         shards.change(kLmHead, 2, [](ShardRows rows) {
           for (i64 i = 0; i < rows.rows * rows.columns - 16; i += 20) {
             rows.add_to_bits(i / rows.columns, i % rows.columns, 1);
           }
           return rows;
         });
       }},
      {"28",
       "experts of two ranks exchanged",
       "prototype",
       "ep=4",
       kFunction,
       {"rank 0 holds expert 1's instead of expert 0's",
        "rank 1 holds expert 0's instead of expert 1's"},
       exchange_experts},
      {"29",
       "router rows permuted",
       "prototype",
       "tp=4",
       kFunction,
       {"mlp.gate.weight: rank 0 row 0 holds row 1, row 1 holds row 0"},
       [](const ShardSet& shards) {
         shards.change_all("model.layers.1.mlp.gate.weight", [](const ShardRows& rows) {
           return rows.rows_in({1, 0, 2, 3});
         });
       }},
      // Rank 0 has experts 0 and 1, but its results also depend on the others' scores.
      {"A2",
       "router row lost, of an expert that other devices have",
       "prototype",
       "ep=2,tp=2",
       kFunction,
       {"mlp.gate.weight: rank 0 rows [3, 4) is zero"},
       [](const ShardSet& shards) {
         shards.change("model.layers.1.mlp.gate.weight", 0, [](ShardRows rows) {
           std::fill_n(rows.at(3, 0), rows.columns * rows.element(), std::uint8_t{0});
           return rows;
         });
       }},
      {"30",
       "expert w1 and w3 exchanged",
       "prototype",
       "tp=4",
       kFunction,
       {"gate_proj holds up_proj", "experts.2.gate_proj.weight"},
       [](const ShardSet& shards) {
         for (i64 rank = 0; rank < 4; ++rank) {
           shards.exchange(kExperts + "2.gate_proj.weight", kExperts + "2.up_proj.weight", rank);
         }
       }},
      {"31",
       "an expert zeroed",
       "prototype",
       "tp=4",
       kFunction,
       {"experts.3.gate_proj.weight: rank 0 is all zeros"},
       [](const ShardSet& shards) {
         for (const std::string part : {"gate_proj", "up_proj", "down_proj"}) {
           shards.change_all(kExperts + "3." + part + ".weight", zeros);
         }
       }},
      {"33",
       "one rank stale: 1 % noise on a down shard",
       "prototype",
       "tp=4",
       kFunction,
       {"down_proj.weight: rank 1", "elements differ, by up to"},
       [](const ShardSet& shards) {
         shards.change(kMlp + "down_proj.weight", 1, [](ShardRows rows) {
           for (i64 i = 0; i < rows.rows * rows.columns; ++i) {
             rows.add_to_bits(i / rows.columns, i % rows.columns, i * 7 % 9 - 4);
           }
           return rows;
         });
       }},
      {"35",
       "last two rows zero",
       "prototype",
       "tp=4",
       kFunction,
       {"lm_head.weight: rank 3 rows [94, 96) are zero"},
       [](const ShardSet& shards) {
         shards.change(kLmHead, 3, [](ShardRows rows) {
           std::fill(rows.bytes.end() - 2 * rows.columns * rows.element(), rows.bytes.end(),
                     std::uint8_t{0});
           return rows;
         });
       }},
      {"36",
       "rank 1 file is a copy of rank 0",
       "prototype",
       "tp=4",
       kFunction,
       {"embed_tokens.weight: rank 1 holds the shard of rank 0"},
       [](const ShardSet& shards) {
         for (const std::string& name : shards.tensors()) {
           shards.write(name, 1, shards.read(name, 0));
         }
       }},
  };
}

}  // namespace shardtool::test
