#pragma once

#include "lib/plan/activations.h"

/// The time of a step of training: the micro-batches of a replica pass through its pipeline stages,
/// forward and backward, and then all replicas agree on the gradients.
namespace shardtool::plan {

/// Forward pass of one micro-batch through one layer, on one device, in microseconds.
struct ForwardTimes {
  double products = 0;     ///< with reads of weights that they do not hide
  double attention = 0;    ///< part of products: queries with keys, and with values
  double collectives = 0;  ///< of activations
  double launches = 0;
};

/// Collectives of one layer's weights and gradients among data-parallel devices, in microseconds.
struct ReplicaTimes {
  double all_reduce = 0;
  double all_gather = 0;
  double reduce_scatter = 0;
};

struct StepShape {
  i64 micro_batches = 1;  ///< of one replica
  i64 stages = 1;
  int zero_stage = 0;
};

/// Time of a step by its cause, in microseconds.
struct StepParts {
  double compute = 0;
  double recompute = 0;    ///< all that is done again for the backward pass
  double collectives = 0;  ///< of activations
  double replicas = 0;     ///< collectives of weights and gradients that no pass hides
  double launches = 0;
  double idle = 0;       ///< while the pipeline fills and drains
  double optimizer = 0;  ///< reads and writes of the training state

  double total() const;
  StepParts& operator+=(const StepParts& other);
};

/// Computes the parts of a step that one layer of a stage takes, without the optimizer's. A
/// backward pass has twice the products and launches of a forward pass, and its collectives.
/// Recompute repeats the forward pass (full), or its attention (selective).
///
///     pass  = 3 products + 2 collectives + 3 launches + recompute
///     layer = (micro_batches + stages - 1) pass + replicas
///
/// Collectives among replicas run beside the passes of the same layer; what takes longer remains
/// (ZeRO stages of arXiv 1910.02054): one all_reduce of the gradients (0); one reduce_scatter and
/// one all_gather (1); a reduce_scatter per micro-batch and one all_gather (2); two all_gathers and
/// a reduce_scatter per micro-batch (3). Requires at least one micro-batch and stage, 0 <= ZeRO
/// <= 3.
StepParts layer_step(const ForwardTimes& forward, const ReplicaTimes& replicas, Recompute recompute,
                     const StepShape& shape);

}  // namespace shardtool::plan
