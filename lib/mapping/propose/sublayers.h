#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/mapping/propose/kinds.h"

namespace shardtool::mapping {

/// The weights of one MLP: its inputs (up, gate or both in one) and its output.
struct MlpKinds {
  std::vector<const TensorKind*> in;  ///< kUp or kGateUp
  const TensorKind* out = nullptr;
};

/// The weights of one attention layer.
struct AttentionKinds {
  std::vector<const TensorKind*> in;  ///< q, k and v, separate or fused
  const TensorKind* out = nullptr;
  /// Further tensors, whose use is not known; they may tie heads to each other.
  std::vector<const TensorKind*> others;

  /// The weight with this role, or null.
  const TensorKind* find(Role role) const;
};

/// Parts of a model's layers that are recognised by the names of their weights.
struct Sublayers {
  std::vector<MlpKinds> mlps;
  std::vector<AttentionKinds> attentions;
};
Sublayers find_sublayers(const std::map<std::string, TensorKind>& kinds);

/// Extents of vectors that are no biases of a projection, in the block of `kind` or around it:
/// norms, which have the hidden size.
std::vector<i64> norm_extents(const std::map<std::string, TensorKind>& kinds,
                              const TensorKind& kind);
/// The bias of a weight, or null.
const TensorKind* bias_of(const std::map<std::string, TensorKind>& kinds, const TensorKind& weight);

}  // namespace shardtool::mapping
