#pragma once

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Bytes per parameter of mixed-precision training: 16-bit weights and gradients, and the
/// optimizer's own state.
struct TrainingState {
  i64 weight = 2;
  i64 gradient = 2;
  i64 optimizer = 12;  ///< Adam: FP32 weights, momentum and variance
};

/// Adam 12 bytes, SGD with momentum 8 (FP32 weights and momentum), plain SGD 4.
inline constexpr TrainingState kAdam{2, 2, 12};
inline constexpr TrainingState kMomentum{2, 2, 8};
inline constexpr TrainingState kSgd{2, 2, 4};

/// Bytes of training state on one of `ranks` data-parallel devices that together train
/// `parameters`, by ZeRO stage (Rajbhandari et al., arXiv 1910.02054, figure 1):
///     0   (w + g + o) P          2   w P + (g + o) P / N
///     1   (w + g) P + o P / N    3   (w + g + o) P / N
/// Requires 0 <= stage <= 3 and ranks >= 1. Throws kLimit on overflow.
i64 zero_state_bytes(i64 parameters, int stage, i64 ranks, TrainingState state = kAdam);

/// State that moves to host memory.
enum class Offload { kNone, kOptimizer, kOptimizerAndWeights };

/// Bytes on one device by DeepSpeed's own estimators (stages 2 and 3). Its optimizer keeps 16 bytes
/// per parameter in stage 2 and 18 in stage 3, and stage 3 holds the largest layer whole:
///     stage 2   none 4 P + 16 P / N    optimizer 2 P
///     stage 3   none 4 L + 18 P / N    optimizer 4 L + 2 P / N    both 4 L
double deepspeed_device_bytes(i64 parameters, i64 largest_layer, int stage, i64 ranks,
                              Offload offload);

}  // namespace shardtool::plan
