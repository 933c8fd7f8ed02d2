#pragma once

#include <optional>

#include "lib/check/finding.h"
#include "lib/mapping/document/config.h"

namespace shardtool::api {

/// Compares two config.json files at all paths that a run read of the first one, and at
/// tie_word_embeddings if both have it. Returns a finding for values that differ; an absent value
/// equals null and false. Element types and quantisation are those of the files, not of what they
/// compute.
std::optional<check::Finding> config_difference(const mapping::ModelConfig& shards,
                                                const mapping::ModelConfig& reference);

}  // namespace shardtool::api
