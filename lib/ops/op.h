#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lib/base/error.h"
#include "lib/ops/activation/activation.h"
#include "lib/ops/arithmetic/arithmetic.h"
#include "lib/ops/attention/attention.h"
#include "lib/ops/experts/experts.h"
#include "lib/ops/hyper_connections/hyper_connections.h"
#include "lib/ops/inputs/inputs.h"
#include "lib/ops/linear/linear.h"
#include "lib/ops/norm/norm.h"
#include "lib/ops/patches/patches.h"
#include "lib/ops/recurrence/recurrence.h"
#include "lib/ops/rope/rope.h"
#include "lib/ops/schema.h"
#include "lib/ops/sections/sections.h"

namespace shardtool::ops {

struct OpKind;

/// One step of a forward pass. Inputs and outputs are values by name.
struct Op {
  using Kind =
      std::variant<Embed, ExtraInput, Sinusoids, ConvolveFrames, Linear, Merge, Insert, ClassToken,
                   Split, OfLayer, Join, Norm, Sums, Normalise, Resize, GaussianTopK,
                   HyperConnection, Sinkhorn, Rope, PositionBias, BucketScores, Attention, Convolve,
                   CompressedKv, StepSize, Decay, Fade, Recurrence, Activation, Xielu, Multiply,
                   Add, Scale, Shift, TemperatureTuning, Softcap, Clamp, Router, Experts>;
  const OpKind* row = nullptr;  ///< row in the table of ops
  std::vector<std::string> in;
  std::vector<std::string> out;
  Kind kind;
  /// Weights in the order of the op's decode(). Experts have theirs in the forms.
  std::vector<WeightRef> weights;
  bool is_head = false;  ///< a Linear whose result is the model's
  Place place;
};

}  // namespace shardtool::ops
