#include <algorithm>

#include "tests/validate/made_model.h"
#include "tests/validate/mutations/mutations.h"

/// Rows of the matrix about single numbers and their bits.
namespace shardtool::test {
namespace {

ShardRows bytes_reversed(ShardRows rows) {
  for (size_t i = 0; i + 1 < rows.bytes.size(); i += 2) {
    std::swap(rows.bytes[i], rows.bytes[i + 1]);
  }
  return rows;
}

/// Doubles every bf16 by its exponent.
ShardRows doubled_bf16(ShardRows rows) {
  constexpr i64 kExponent = 1 << 7;
  for (i64 i = 0; i < rows.rows * rows.columns; ++i) {
    rows.add_to_bits(i / rows.columns, i % rows.columns, kExponent);
  }
  return rows;
}

ShardRows with(ShardRows rows, i64 row, i64 column, std::uint64_t bits) {
  rows.set_bits(row, column, bits);
  return rows;
}

constexpr std::uint64_t kNan = 0x7fc0;
constexpr std::uint64_t kInfinity = 0x7f80;

}  // namespace

std::vector<Mutation> value_mutations() {
  return {
      {"16",
       "one weight +1 bf16 ulp",
       "prototype",
       "tp=4",
       kFunction,
       {"up_proj.weight: rank 1 element [35, 7] is", "(1 ulp)"},
       [](const ShardSet& shards) {
         shards.change(kUp, 1, [](ShardRows rows) {
           rows.add_to_bits(3, 7, 1);
           return rows;
         });
       }},
      {"17",
       "one weight zeroed",
       "prototype",
       "tp=4",
       kFunction,
       {"up_proj.weight: rank 1 element [35, 7] is 0 instead of"},
       [](const ShardSet& shards) {
         shards.change(kUp, 1, [](const ShardRows& rows) { return with(rows, 3, 7, 0); });
       }},
      {"19",
       "a 16x16 tile transposed",
       "prototype",
       "tp=4",
       kFunction,
       {"up_proj.weight: rank 1 rows [32, 48) x columns [16, 32) are transposed"},
       [](const ShardSet& shards) {
         shards.change(kUp, 1, [](const ShardRows& rows) {
           ShardRows changed = rows;
           ShardRows source = rows;
           for (i64 r = 0; r < 16; ++r) {
             for (i64 c = 0; c < 16; ++c) {
               std::copy_n(source.at(c, 16 + r), rows.element(), changed.at(r, 16 + c));
             }
           }
           return changed;
         });
       }},
      {"40",
       "sign bit of one weight flipped",
       "prototype",
       "tp=4",
       kFunction,
       {"up_proj.weight: rank 1 element [35, 7] is", "(the sign is flipped)"},
       [](const ShardSet& shards) {
         shards.change(kUp, 1, [](ShardRows rows) {
           rows.add_to_bits(3, 7, 0x8000);
           return rows;
         });
       }},
      {"50",
       "replica of a norm differs by 1 ulp on one rank",
       "prototype",
       "tp=4",
       kFunction,
       {"post_attention_layernorm.weight: rank 3 element [9] is", "(1 ulp)"},
       [](const ShardSet& shards) {
         shards.change("model.layers.1.post_attention_layernorm.weight", 3, [](ShardRows rows) {
           rows.add_to_bits(9, 0, 1);
           return rows;
         });
       }},
      {"65",
       "layer files of two checkpoints mixed",
       "prototype",
       "tp=4",
       kFunction,
       {"q_proj.weight: rank 0 ", "elements differ"},
       [](const ShardSet& shards) {
         TempFolder folder;
         const ShardSet other(split_copy("other prototype", "tp=4", folder));
         for (const std::string& name : shards.tensors()) {
           if (name.find("layers.1.") == std::string::npos) continue;
           if (name.find("layernorm") != std::string::npos) continue;
           for (i64 rank = 0; rank < 4; ++rank) shards.write(name, rank, other.read(name, rank));
         }
       }},
      {"66",
       "NaN in a weight of the shards",
       "prototype",
       "tp=4",
       {"pass", "fail", "undecided", "fail", "undecided", "undecided"},
       {"up_proj.weight: rank 1 element [35, 7] is nan instead of"},
       [](const ShardSet& shards) {
         shards.change(kUp, 1, [](const ShardRows& rows) { return with(rows, 3, 7, kNan); });
       }},
      {"66'",
       "NaN in a weight of the whole model",
       "prototype with NaN",
       "tp=4",
       {"pass", "pass", "undecided", "undecided", "undecided", "undecided"},
       {"weights with NaN or infinities have no value to compare in f64"},
       [](const ShardSet&) {}},
      {"67",
       "infinity from narrowing to f16",
       "prototype",
       "tp=4",
       kFunction,
       {"up_proj.weight: rank 1 element [35, 7] is inf instead of"},
       [](const ShardSet& shards) {
         shards.change(kUp, 1, [](const ShardRows& rows) { return with(rows, 3, 7, kInfinity); });
       }},
      {"68",
       "f32 to bf16 by truncation instead of rounding",
       "prototype",
       "tp=4",
       kFunction,
       {"elements differ by at most 1 ulp, all nearer to zero"},
       [](const ShardSet& shards) {
         TempFolder folder;
         const ShardSet other(split_copy("truncated prototype", "tp=4", folder));
         for (i64 rank = 0; rank < 4; ++rank) shards.write(kUp, rank, other.read(kUp, rank));
       }},
      {"69",
       "byte order of one shard reversed",
       "prototype",
       "tp=4",
       {"pass", "fail", "undecided", "fail", "undecided", "undecided"},
       {"up_proj.weight: rank 2 bytes are reversed"},
       [](const ShardSet& shards) { shards.change(kUp, 2, bytes_reversed); }},
      {"73",
       "a sum made twice, as its summands twice as large",
       "prototype",
       "tp=4",
       kFunction,
       {"o_proj.weight: rank 0 is counted 2 times; rank 1 is counted 2 times"},
       [](const ShardSet& shards) {
         shards.change_all(kO + ".weight", doubled_bf16);
         shards.change_all(kO + ".bias", doubled_bf16);
       }},
      {"74",
       "data-parallel replica differs in one tensor",
       "prototype",
       "dp=2,tp=2",
       kFunction,
       {"up_proj.weight: rank 3 element [67, 7] is"},
       [](const ShardSet& shards) {
         shards.change(kUp, 3, [](const ShardRows& rows) { return with(rows, 3, 7, 0x3f80); });
       }},
  };
}

}  // namespace shardtool::test
