#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/mapping/document/config.h"

namespace shardtool::ops {

/// Position p turns pair i by the angle p * inverse[i]; cosines and sines are times
/// attention_factor. In double: the reference library computes the powers, the blends and the
/// angles in f32, so that its inverses differ by up to 4e-7 of themselves (measured) and its angles
/// by as much.
struct RopeFrequencies {
  std::vector<double> inverse;  ///< one per pair
  double attention_factor = 1;
};

/// The frequencies of rotating `rotary_dims` features by angles of `theta` over inputs of `length`
/// positions: as config.json asks at the first of `paths` that it has something at. With b(i) =
/// theta^(-2i / rotary_dims):
///
///     default     b
///     linear      b / factor
///     dynamic     b of a theta that grows with the length beyond max_position_embeddings, or with
///                 `alpha` where there is one
///     llama3      b where waves are short, b / factor where they are long, a blend between
///     yarn        b for pairs that turn often over the trained length, b / factor for the others,
///     a
///                 ramp between; the attention factor follows from `factor` and mscale
///     longrope    b / short_factor up to the trained length, b / long_factor beyond it; times
///                 short_mscale or long_mscale where they are given
///     proportional  b / factor for the share of the pairs that partial_rotary_factor says, from
///                 the first on; the others stand still
///
/// "mrope" rotates by three positions, which of text are one: default. The old name "su" means
/// longrope, and so does "yarn" where there are lists of factors (Phi 3). Throws kUnsupported for
/// another type and for parameters per type of layer; kConfig for a value that is absent or of
/// another kind. Requires 2 <= rotary_dims, theta > 1, 1 <= length. With a `yarn_factor` that is
/// yarn's attention factor where the config gives none.
RopeFrequencies rope_frequencies(const mapping::ModelConfig& config,
                                 std::span<const std::string> paths, i64 rotary_dims, double theta,
                                 i64 length, std::optional<double> yarn_factor = std::nullopt);

/// Returns the factor of attention scores with Attention::yarn_scale: the square of 0.1
/// mscale_all_dim ln(factor) + 1; 1 without a scaling or an mscale_all_dim. Throws kConfig.
double yarn_score_factor(const mapping::ModelConfig& config);

}  // namespace shardtool::ops
