#pragma once

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/layouts/engine_layout.h"

namespace shardtool::api {

/// True for a checkpoint whose tensors are those of single ranks (format::torch::kMegatronRanks).
bool is_of_ranks(const LogicalCheckpoint& stored);

/// Joins the tensors of the ranks to those of the whole model, by the layout's RankForm: the parts
/// of a tensor-parallel group are its holders, whole tensors have a replica on every rank, and each
/// pipeline stage counts its layers on from those of the stages before it. Requires is_of_ranks.
/// Throws kShapeMismatch for ranks that differ in shape or dtype, kCoverage for a rank without its
/// part, kUnsupported for groups of heads that several ranks share, and kConfig if the config lacks
/// the number of groups.
LogicalCheckpoint joined_ranks(LogicalCheckpoint stored, const layouts::EngineLayout& layout,
                               const mapping::ModelConfig* config);

}  // namespace shardtool::api
