#pragma once

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Live values of one layer during a forward pass, on one device, in elements per token.
struct LiveWidths {
  i64 hidden = 0;     ///< the residual stream
  i64 attention = 0;  ///< outputs of the attention's matrices on this device
  i64 mlp = 0;        ///< outputs of the MLP's matrices on this device
  i64 vocab = 0;      ///< logits on this device
};

/// Estimates the buffers of a forward pass, in bytes:
///     tokens * (2 hidden + max(attention, mlp)) * bits / 8  +  sequences * vocab * 4
/// the residual stream and its normed copy, the widest block's outputs, and the logits of the last
/// token of every sequence in FP32. Throws kLimit on overflow.
i64 inference_activations(const LiveWidths& widths, int bits, i64 tokens, i64 sequences);

enum class Recompute { kNone, kSelective, kFull };

/// Transformer layer, with the names of Korthikanti et al. (arXiv 2205.05198).
struct TrainedLayer {
  i64 sequence = 0;         ///< s, tokens
  i64 batch = 0;            ///< b, micro-batch
  i64 hidden = 0;           ///< h
  i64 heads = 0;            ///< a, query heads of the device; in the paper a / t
  i64 tensor_parallel = 1;  ///< t
  /// w, elements per token that a device keeps inside the blocks: results of their first products
  /// and inputs of their last ones. In the paper 12 h / t: 4 h of the attention, 8 h of the MLP.
  i64 inner = 0;
  bool sequence_parallel = false;
  Recompute recompute = Recompute::kNone;
};

/// Bytes of activations that one layer keeps for its backward pass in 16-bit training (table 2 of
/// the paper, of which w generalises 12 h / t):
///     none        s b (10 h + 2 w + 5 a s)
///     selective   without the term of a;   full   2 s b h
/// With sequence parallelism h / t stands for h, also in the input of a layer, which is all that
/// full recomputation keeps.
double training_activations_per_layer(const TrainedLayer& layer);

/// Bytes that a layer's full recomputation makes again, of one layer at a time: those of `none`
/// without the layer's input, which is kept. 0 for selective recomputation, as in the paper.
double recomputed_activations(TrainedLayer layer);

/// Bytes of activations that the head keeps for its backward pass (section 4.3 of the paper), in
/// which w are the logits of the device, in FP32: v / t. The inputs of its norm and of its products
/// have 16 bits.
///     s b (4 h + 4 w)      in the paper, with sequence parallelism: 4 s b h (1 + v / h) / t
double training_head_activations(const TrainedLayer& head);

}  // namespace shardtool::plan
