#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"

namespace shardtool::mapping {

/// What the attention of one layer keeps of every token, and the tensor that says who keeps it.
struct LayerCache {
  i64 layer = 0;
  size_t tensor = 0;    ///< index into the specs: the projection that makes the keys
  bool latent = false;  ///< one vector for all heads (MLA): whole on every device that has `tensor`
  i64 units = 1;        ///< KV heads; 1 when latent
  i64 unit_elements = 0;  ///< per token: a key and a value of a head, or kv_lora_rank + rope_dim
  i64 window = 0;         ///< tokens that a sliding window keeps; 0: all
  i64 stride = 1;         ///< tokens that one entry stands for, where they are compressed
  bool cross = false;     ///< of the encoder's positions, once per sequence; not of every token
};

/// What attention caches, as config.json says it.
struct AttentionCache {
  /// Ascending, those of cross-attention last; those that predict further tokens are not counted.
  /// A layer that keeps more than one kind of entries is there once for each.
  std::vector<LayerCache> layers;
  std::optional<std::string> dtype;      ///< of the model's activations: "bfloat16"
  std::optional<i64> hidden;             ///< width of the residual stream
  std::optional<i64> heads;              ///< query heads
  std::optional<i64> n_layers;           ///< that config.json says
  std::optional<i64> experts_per_token;  ///< absent: not known to have any
  std::optional<i64> source_positions;   ///< of the encoder, where they are always as many
  std::vector<std::string> notes;  ///< what could not be decided, and what was assumed instead
};

/// Reads the keys of facts/attention_cache.json; the numbers of heads and their width from the axes
/// of a mapping (Resolution::axis_sizes) where it has them, since presets know defaults. A model
/// without attention, or whose projections have names that are not known, has no layers and a note.
/// Throws kSizeExpression for a size that is no positive integer.
AttentionCache attention_cache(const ModelConfig& config, std::span<const TensorSpec> tensors,
                               const std::map<std::string, i64>& axis_sizes = {});

}  // namespace shardtool::mapping
