#pragma once

#include <set>
#include <string>
#include <string_view>

#include "lib/model/graph/graph.h"
#include "lib/ops/bound_op.h"

/// Questions about the variants of a graph that binding and config_tensors.h both ask.
namespace shardtool::model {

/// True if config.json and the layer allow the way.
bool is_allowed(const Way& way, const mapping::ModelConfig& config, i64 layer);

/// True if all inputs of the way are among the values `made`, or made in the way itself.
bool has_inputs(const Way& way, std::set<std::string> made);

/// True if the first architecture in config.json makes words.
bool makes_words(const mapping::ModelConfig& config);

/// Says whether a model makes words with an output matrix of its own. It is unclear where
/// "tie_word_embeddings" is false and that of text_config is true: in transformers 5.19 the outer
/// value counts in most models, as in Qwen3-VL, and the inner one in those that earlier versions
/// saved so (models/llava_onevision/configuration_llava_onevision.py).
enum class OwnHead { kNo, kYes, kUnclear };

/// Returns what config.json says; kNo where it says nothing.
OwnHead own_head(const mapping::ModelConfig& config);

/// Returns a number of layers, experts or heads, which has a limit: to treat those without tensors
/// would take time without bound. Throws kConfig, and what ModelSizes::size throws.
i64 count_of(const ops::ModelSizes& sizes, const Dim& number, std::string_view what);

}  // namespace shardtool::model
