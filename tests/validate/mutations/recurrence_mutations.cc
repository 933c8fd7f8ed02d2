#include "tests/validate/mutations/mutations.h"

/// Faults of fused projections, convolutions, states, and the norms after them.
namespace shardtool::test {
namespace {

const std::string kDelta = "model.layers.0.linear_attn.";
const std::string kShared = "model.layers.2.shared_transformer.self_attn.";
const std::string kMamba = "backbone.layers.0.mixer.";

std::vector<i64> stretches(const std::vector<std::pair<i64, i64>>& all) {
  std::vector<i64> order;
  for (const auto& [begin, end] : all) {
    const auto some = range(begin, end);
    order.insert(order.end(), some.begin(), some.end());
  }
  return order;
}

/// Reorders one rank's rows.
std::function<void(const ShardSet&)> reordered(const std::string& tensor, i64 rank,
                                               const std::vector<std::pair<i64, i64>>& order) {
  return [tensor, rank, order](const ShardSet& shards) {
    shards.change(tensor, rank,
                  [&](const ShardRows& rows) { return rows.rows_in(stretches(order)); });
  };
}

/// Gives each of two ranks the listed rows of the whole tensor.
std::function<void(const ShardSet&)> dealt(const std::string& tensor,
                                           const std::vector<std::pair<i64, i64>>& first,
                                           const std::vector<std::pair<i64, i64>>& second) {
  return [tensor, first, second](const ShardSet& shards) {
    const ShardRows all = below_each_other(shards, tensor);
    shards.write(tensor, 0, all.rows_in(stretches(first)));
    shards.write(tensor, 1, all.rows_in(stretches(second)));
  };
}

}  // namespace

std::vector<Mutation> recurrence_mutations() {
  return {
      over_two(
          "R1", "queries and keys of a fused group exchanged", "qwen3_next",
          {"in_proj_qkvz.weight: rank 0 holds rows [6, 12) [0, 6) [12, 52) instead of [0, 52)"},
          reordered(kDelta + "in_proj_qkvz.weight", 0, {{6, 12}, {0, 6}, {12, 52}})),
      over_two(
          "R2", "key heads of two ranks exchanged", "qwen3_next",
          {"in_proj_qkvz.weight: rank 0 linear k head 0 holds linear k head 1; rank 1 linear k "
           "head 1 "
           "holds linear k head 0"},
          [](const ShardSet& shards) { shards.exchange(kDelta + "in_proj_qkvz.weight", 0, 1); }),
      over_two("R3", "channels of the convolution cut as one section", "qwen3_next",
               {"conv1d.weight: rank 0 "},
               dealt(kDelta + "conv1d.weight", {{0, 6}, {32, 38}, {6, 12}, {38, 44}, {12, 20}},
                     {{20, 32}, {44, 64}})),
      over_two("R4", "taps of the convolution reversed", "qwen3_next", {"conv1d.weight: rank 0 "},
               [](const ShardSet& shards) {
                 shards.change_all(kDelta + "conv1d.weight", [](const ShardRows& rows) {
                   return rows.columns_in({3, 2, 1, 0});
                 });
               }),
      over_two("R5", "rates of two heads exchanged", "qwen3_next",
               {"A_log: rank 1 linear v head 2 holds linear v head 3"},
               reordered(kDelta + "A_log", 1, {{1, 2}, {0, 1}})),
      over_two("R6", "gates and steps fused as sections instead of per group", "qwen3_next",
               {"in_proj_ba.weight: rank 0 row 2 holds row 4, row 3 holds row 5"},
               dealt(kDelta + "in_proj_ba.weight", {{0, 2}, {4, 6}}, {{2, 4}, {6, 8}})),
      over_two("R7", "a step's bias lost", "qwen3_next", {"dt_bias: rank 1 is all zeros"},
               [](const ShardSet& shards) { shards.change(kDelta + "dt_bias", 1, zeros); }),
      over_two(
          "R8", "inputs and outputs of the state exchanged", "mamba2",
          {"in_proj.weight: rank 1 holds rows "},
          reordered(kMamba + "in_proj.weight", 1, {{0, 96}, {116, 136}, {96, 116}, {136, 140}})),
      over_two("R9", "parts of the norm exchanged that follows the state", "mamba2_one_group",
               {"norm.weight: rank 0 holds the shard of rank 1"},
               [](const ShardSet& shards) { shards.exchange(kMamba + "norm.weight", 0, 1); }),
      over_two(
          "R11", "queries and output gates of every head exchanged", "qwen3_next",
          {"q_proj.weight: rank 0 holds rows [16, 32) [0, 16) [48, 64) [32, 48) instead of [0, "
           "64)"},
          reordered("model.layers.1.self_attn.q_proj.weight", 0,
                    {{16, 32}, {0, 16}, {48, 64}, {32, 48}})),
      over_two("R10", "a skip of another head", "mamba2", {"D: rank 0 ssm head 0 holds ssm head 3"},
               reordered(kMamba + "D", 0, {{3, 4}, {1, 2}, {2, 3}, {0, 1}})),
      over_two("R12", "gates and inputs of the state exchanged, beside attention", "falcon_h1",
               {"in_proj.weight: rank 0 z_raw holds x_raw, x_raw holds z_raw"},
               reordered("model.layers.0.mamba.in_proj.weight", 0, {{32, 64}, {0, 32}, {64, 80}})),
      over_two("R13", "heads of attention between states exchanged", "bamba",
               {"q_proj.weight: rank 0 holds the shard of rank 1"},
               [](const ShardSet& shards) {
                 shards.exchange("model.layers.1.self_attn.q_proj.weight", 0, 1);
               }),
      over_two(
          "R14", "heads of a block exchanged that several layers share", "zamba2",
          {"layers.2.shared_transformer.self_attn.q_proj.weight: rank 0 holds the shard of rank 1"},
          [](const ShardSet& shards) { shards.exchange(kShared + "q_proj.weight", 0, 1); }),
      over_two("R15", "the adapter of another layer of a shared block", "zamba2",
               {"linear_v_adapter_list.2.1.weight"},
               [](const ShardSet& shards) {
                 const std::string list =
                     "model.layers.1.shared_transformer.self_attn.linear_v_adapter_list.";
                 shards.exchange(list + "0.1.weight", list + "2.1.weight", 1);
               }),
      over_two("R16", "the input and the gate of a state exchanged", "mamba",
               {"in_proj.weight: rank 0 mixed holds z, z holds mixed"},
               reordered(kMamba + "in_proj.weight", 0, {{48, 96}, {0, 48}})),
      over_two("R17", "rates of two features exchanged", "falcon_mamba",
               {"A_log: rank 1 ssm feature 72 holds ssm feature 75"},
               reordered(kMamba + "A_log", 1, {{3, 4}, {1, 3}, {0, 1}, {4, 72}})),
      over_two("R18", "rates of two numbers of every state exchanged", "mamba", {"A_log: rank 0 "},
               [](const ShardSet& shards) {
                 shards.change_all(kMamba + "A_log", [](const ShardRows& rows) {
                   return rows.columns_in({1, 0, 2, 3, 4, 5});
                 });
               }),
      over_two("R19", "what a state's inputs and outputs are made by exchanged", "jamba",
               {"x_proj.weight: rank 0 "},
               [](const ShardSet& shards) {
                 shards.change_all("model.layers.0.mamba.x_proj.weight", [](const ShardRows& rows) {
                   return rows.rows_in(exchanged(17, 5, 11, 6));
                 });
               }),
      over_two("R20", "steps of another layer", "jamba",
               {"dt_proj.weight: rank 1 holds layer 2's instead of layer 0's"},
               [](const ShardSet& shards) {
                 shards.exchange("model.layers.0.mamba.dt_proj.weight",
                                 "model.layers.2.mamba.dt_proj.weight", 1);
               }),
      over_two("R21", "the two gates of a short convolution exchanged", "lfm2",
               {"conv.in_proj.weight: rank 0 b holds c, c holds b"},
               reordered("model.layers.0.conv.in_proj.weight", 0, {{24, 48}, {0, 24}, {48, 72}})),
      over_two("R22", "the parts of a short convolution cut as one", "lfm2_moe",
               {"conv.in_proj.weight: rank 0 holds rows [0, 72)"},
               dealt("model.layers.2.conv.in_proj.weight", {{0, 24}, {72, 96}, {24, 48}},
                     {{96, 120}, {48, 72}, {120, 144}})),
      over_two("R23", "slopes of two heads exchanged", "minimax", {"slope_rate: rank 0 "},
               reordered("model.layers.0.self_attn.slope_rate", 0, {{1, 2}, {0, 1}})),
      over_two("R24", "keys and values of every head exchanged", "minimax",
               {"self_attn.qkv_proj.weight: rank 1 "},
               reordered("model.layers.0.self_attn.qkv_proj.weight", 1,
                         {{0, 10}, {20, 30}, {10, 20}, {30, 40}, {50, 60}, {40, 50}})),
      over_two("R25", "the paces of two heads exchanged", "kimi_linear",
               {"f_b_proj.weight: rank 0 "},
               reordered("model.layers.0.self_attn.f_b_proj.weight", 0, {{10, 20}, {0, 10}})),
      over_two("R26", "queries convolved as keys are", "kimi_linear", {"q_conv1d.weight: rank 1 "},
               [](const ShardSet& shards) {
                 shards.exchange("model.layers.0.self_attn.q_conv1d.weight",
                                 "model.layers.0.self_attn.k_conv1d.weight", 1);
               }),
  };
}

}  // namespace shardtool::test
