#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lib/model/flow/flow.h"
#include "lib/plan/activations.h"
#include "lib/plan/kv_cache.h"

/// Facts for a memory report, derived from the ops of a bound graph. The model may be bound with
/// Misfits::kLeaveOut.
namespace shardtool::model {

/// Class of a tensor in a memory report, by the op that reads it.
enum class TensorClass { kEmbedding, kAttention, kMlp, kExperts, kNorms, kScales, kHead, kOther };

/// Returns the class of every bound tensor, by its index in the specs. A tensor that several ops
/// read has the class of the first one. A tensor that no op reads is absent.
///
///     embedding  tables, and linear ops before the first layer
///     attention  ops that are joined to an attention or a linear attention
///     mlp        other linear ops that are joined to an activation, and routers
///     head       ops that are joined to the one whose result is the model's
///     other      state spaces, short convolutions, hyper-connections, a tower's projection
///
/// Ops of a layer are joined by values that some linear op made and that are not added to the
/// residual stream.
std::map<size_t, TensorClass> tensor_classes(const Model& model);

/// Cache entries of one attention, all of one kind.
struct LayerCache {
  i64 layer = 0;
  size_t tensor = 0;  ///< index into the specs: the weight of the keys
  size_t axis = 0;    ///< the tensor's output axis
  i64 first = 0;      ///< the first of the keys' rows on that axis
  i64 rows = 0;       ///< number of these rows
  /// One vector for all heads; every device that has `tensor` caches all of it.
  bool latent = false;
  i64 units = 1;          ///< KV heads; 1 when latent
  i64 unit_elements = 0;  ///< per token: a key and a value of a head, or the latent vector
  i64 window = 0;         ///< tokens that a sliding window keeps; 0: all
  i64 stride = 1;         ///< tokens per entry, if entries are compressed
  bool cross = false;     ///< over the encoder's positions, once per sequence
};
/// Returns the caches layer by layer. Encoders, towers, and layers that reuse the keys of an
/// earlier layer have none. Throws what window_of throws.
std::vector<LayerCache> attention_caches(const Model& model);

/// Caches of one device; equal layers are counted together.
struct DeviceCaches {
  std::vector<plan::CachedLayers> layers;
  std::vector<plan::CachedLayers> cross;  ///< over the encoder's positions
};
/// Returns the caches by rank. KV heads count on every device that computes their keys.
std::vector<DeviceCaches> device_caches(const std::vector<LayerCache>& caches,
                                        const LayoutOf& layouts, i64 n_devices);

/// Returns the bytes of recurrent state per sequence, by rank: key_dim x value_dim numbers in f32
/// per head, and the last taps - 1 positions per feature of a convolution, `bits` each. Empty for a
/// model without recurrences and convolutions.
std::vector<i64> recurrent_states(const Model& model, const LayoutOf& layouts, i64 n_devices,
                                  int bits);

/// Returns the widths of activations by rank, each from the widest layer: outputs of linear ops,
/// and inputs of those that add to the residual stream. Experts count top_k times.
std::vector<plan::LiveWidths> live_widths(const Model& model, const LayoutOf& layouts,
                                          i64 n_devices);

/// Returns by rank the elements per token of a device that a layer keeps for its backward pass
/// inside its blocks: the results of linear ops, the inputs of those that add to the residual
/// stream, and of the experts that a token chooses also copies of their inputs. `own_tokens` are
/// the axes along which devices have tokens of their own; tokens choose all experts equally often.
std::vector<i64> kept_widths(const Model& model, const Layer& layer, const LayoutOf& layouts,
                             const mesh::Mesh& mesh, const mesh::Over& own_tokens);

/// Sizes of the stack that generates text, or of the encoder if the model has no other.
struct StackSizes {
  i64 layers = 0;
  i64 hidden = 0;  ///< features of the residual stream
  i64 heads = 0;   ///< query heads
};
StackSizes stack_sizes(const Model& model);

/// Returns the fixed number of positions of an audio encoder; nullopt for a text encoder.
std::optional<i64> source_positions(const Model& model);

}  // namespace shardtool::model
