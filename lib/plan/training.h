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

}  // namespace shardtool::plan
