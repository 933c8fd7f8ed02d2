#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/mapping/document/config.h"

namespace shardtool::ops {

/// Position p rotates pair i by the angle p * inverse[i]; cosines and sines are multiplied by
/// attention_factor. Computed in double. The reference library computes the powers, the blends and
/// the angles in f32, so its inverses and angles differ by up to 4e-7 relatively (measured).
struct RopeFrequencies {
  std::vector<double> inverse;  ///< one per pair
  double attention_factor = 1;
};

/// Returns the frequencies for rotating `rotary_dims` features with base `theta` over inputs of
/// `length` positions, by the parameters at the first of `paths` that exists in config.json. With
/// b(i) = theta^(-2i / rotary_dims):
///
///     default     b
///     linear      b / factor
///     dynamic     b of a theta that grows with the length beyond max_position_embeddings, or with
///                 `alpha` if given
///     llama3      b for short waves, b / factor for long ones, a blend between
///     yarn        b for pairs that turn often over the trained length, b / factor for the others,
///     a
///                 ramp between; the attention factor follows from `factor` and mscale
///     longrope    b / short_factor up to the trained length, b / long_factor beyond it; times
///                 short_mscale or long_mscale if given
///     proportional  b / factor for the first pairs, partial_rotary_factor of all; the others do
///                 not rotate
///
/// "mrope" rotates by three positions, which are equal for text: same as default. The old name "su"
/// means longrope, and so does "yarn" with lists of factors (Phi 3). Throws kUnsupported for
/// another type and for parameters per type of layer; kConfig for a missing value or one of another
/// type. Requires 2 <= rotary_dims, theta > 1, 1 <= length. `yarn_factor` is yarn's attention
/// factor if the config has none.
RopeFrequencies rope_frequencies(const mapping::ModelConfig& config,
                                 std::span<const std::string> paths, i64 rotary_dims, double theta,
                                 i64 length, std::optional<double> yarn_factor = std::nullopt);

/// Returns the factor of attention scores for Attention::yarn_scale: the square of 0.1
/// mscale_all_dim ln(factor) + 1; 1 without a scaling or an mscale_all_dim. Throws kConfig.
double yarn_score_factor(const mapping::ModelConfig& config);

}  // namespace shardtool::ops
