#pragma once

#include <span>
#include <vector>

#include "lib/api/transform.h"
#include "lib/model/flow/flow.h"

/// Virtual pipeline stages: a rank of a pipeline has several runs of layers, and ranks begin with
/// the first layers again after the last rank. With v of them on each of p ranks, run k of the
/// layers is on rank k mod p.
namespace shardtool::api {

/// Places the layers of a mapping so: gives the axis "layers" its owners, in so many rounds.
void deal_layers(MappingChoice& choice, i64 virtual_stages);

/// Returns, by layer, the virtual stage of its rank that has it: 0 to v - 1. `running` are the
/// devices that run each layer (model::running_devices). Throws kMesh unless the layers are on
/// their ranks in v rounds, and kUnsupported for an encoder and a decoder on the same ranks.
std::vector<i64> virtual_stages_of(const model::Model& model,
                                   std::span<const std::vector<i64>> running, i64 virtual_stages);

}  // namespace shardtool::api
