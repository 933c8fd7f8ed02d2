#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/checked.h"
#include "lib/format/reader.h"

namespace shardtool::format::torch {

/// Checkpoint::format of folders that kMegatronReader opens.
inline constexpr std::string_view kMegatronRanks = "torch files of Megatron ranks";

/// Ranks in the name of a folder.
struct MegatronRank {
  i64 tp = 0;
  i64 second = -1;  ///< of pp, or of ep without pp; -1: there is one
  i64 third = -1;   ///< of ep beside pp; -1: there is one
};

/// Parses mp_rank_TT, mp_rank_TT_NNN and mp_rank_TT_NNN_NNN (Megatron-LM d98e8a6,
/// megatron/training/checkpointing.py, get_checkpoint_name); nullopt for other names.
std::optional<MegatronRank> megatron_rank(std::string_view folder);

/// Place of a stored tensor.
struct MegatronTensor {
  MegatronRank rank;
  i64 chunk = 0;     ///< of a virtual pipeline: model0, model1, ...
  std::string name;  ///< of the parameter: "decoder.layers.0.mlp.linear_fc2.weight"
};

/// Parses the name of a tensor that kMegatronReader gives: "mp_rank_00_001.model0.NAME"; nullopt
/// for others.
std::optional<MegatronTensor> megatron_tensor(std::string_view stored);

/// A folder iter_NNNNNNN of Megatron's `--ckpt-format torch`: mp_rank_*/model_optim_rng.pt of every
/// rank, or model_rng.pt of older versions. A tensor's name begins with its folder's. How the ranks
/// cut the tensors is not in the files: the layout megatron knows it. Throws kUnsupported for a
/// checkpoint_version below 2, whose rows of q, k and v have another order.
extern const Reader kMegatronReader;

}  // namespace shardtool::format::torch
