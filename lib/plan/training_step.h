#pragma once

#include "lib/plan/activations.h"
#include "lib/plan/pipeline.h"

/// The time of a step of training: the micro-batches of a replica pass through its pipeline stages,
/// forward and backward, and then all replicas agree on the gradients. `pipeline.h` has the time of
/// all stages together.
namespace shardtool::plan {

/// Forward pass of one micro-batch through one layer, on one device, in microseconds.
struct ForwardTimes {
  double products = 0;     ///< with reads of weights that they do not hide
  double attention = 0;    ///< part of products: queries with keys, and with values
  double collectives = 0;  ///< of activations, among the devices of the layer
  double launches = 0;
  double handoff = 0;              ///< of activations, to the devices of the next pipeline stage
  double quantising = 0;           ///< inputs of products of 8 bits or less
  double gradient_quantising = 0;  ///< in the backward pass, gradients of their results
};

/// Collectives of one layer's weights and gradients among data-parallel devices, in microseconds.
struct ReplicaTimes {
  double all_reduce = 0;
  double all_gather = 0;
  double reduce_scatter = 0;
  double shared = 0;  ///< all_reduce of gradients with other stages that have the same weights
};

/// Time of a step by its cause, in microseconds.
struct StepParts {
  double compute = 0;
  double recompute = 0;    ///< all that is done again for the backward pass
  double collectives = 0;  ///< of activations
  double replicas = 0;     ///< collectives of weights and gradients that no pass hides
  double launches = 0;
  double idle = 0;       ///< while a stage waits for others and for what they hand over
  double optimizer = 0;  ///< reads and writes of the training state

  double total() const;
  /// Time in which a stage works: all but idle.
  double busy() const { return total() - idle; }
  /// Sets idle to the rest of a step of this time. A rest that rounding explains is none.
  void fill_with_idle(double step_us);
  StepParts& operator+=(const StepParts& other);
};

/// Computes the passes of one micro-batch through one layer of a stage. A backward pass has twice
/// the products and launches of a forward pass, its collectives, and gradients to quantise.
/// Recompute repeats the forward pass (full), or its attention (selective); what stages hand over
/// is kept.
///
/// Collectives among replicas run beside the passes of the same layer; what takes longer remains
/// (ZeRO stages of arXiv 1910.02054): one all_reduce of the gradients (0); one reduce_scatter and
/// one all_gather (1); a reduce_scatter per micro-batch and one all_gather (2); two all_gathers and
/// a reduce_scatter per micro-batch (3). What is done per micro-batch lengthens its passes; what is
/// done once comes after them (PipelineStage::after). The all_reduce of weights that several stages
/// have, such as tied embeddings, also comes after them, and no pass hides it (Megatron-LM,
/// _allreduce_word_embedding_grads). Requires 0 <= zero_stage <= 3.
PipelineStage layer_passes(const ForwardTimes& forward, const ReplicaTimes& replicas,
                           Recompute recompute, int zero_stage);

/// Returns the parts of the time in which one layer of a stage works in a step, without the
/// optimizer's: micro_batches (ahead + back) + after, of its passes.
StepParts layer_step(const ForwardTimes& forward, const ReplicaTimes& replicas, Recompute recompute,
                     int zero_stage, i64 micro_batches);

}  // namespace shardtool::plan
