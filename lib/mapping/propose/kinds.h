#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"

namespace shardtool::mapping {

/// Use of a tensor in a forward pass, as far as its name tells.
enum class Role {
  kUnknown,
  kEmbedding,  ///< token embedding, or the head that gives logits: [vocab, hidden]
  kQuery,
  kKey,
  kValue,
  kKeyValue,       ///< k and v in one tensor
  kQueryKeyValue,  ///< q, k and v in one tensor
  kLatentQuery,    ///< q from a low-rank latent (MLA)
  kLatentKeyValue,
  kUp,           ///< up or gate projection of an MLP
  kGateUp,       ///< gate and up in one tensor
  kOut,          ///< output of attention
  kDown,         ///< output of an MLP
  kOutOrDown,    ///< a name that both outputs have; the tensors beside it decide
  kGateOrRoute,  ///< "gate": of an MLP or a router; the shape decides
};
/// Returns the role in words: "query projection".
std::string_view to_string(Role role);

/// All tensors whose names have one form.
struct TensorKind {
  std::string form;               ///< "model.layers.*.self_attn.q_proj.weight"
  std::vector<std::string> path;  ///< {"model", "layers", "*", "self_attn", "q_proj"}
  bool is_bias = false;
  std::string block;  ///< the path up to its last number: "model.layers.*"; may be empty
  std::string group;  ///< the part after it: "self_attn"; empty for a direct member
  Role role = Role::kUnknown;
  std::set<Shape> shapes;  ///< more than one if layers differ
  std::set<std::string> types;
  i64 tensors = 0;

  const Shape& shape() const { return *shapes.begin(); }
  bool has_one_shape() const { return shapes.size() == 1; }
  /// "4 of BF16 [4096, 1024]"
  std::string note() const;
};

/// Groups the tensors by the forms of their names, and gives each kind the role that its name has.
std::map<std::string, TensorKind> kinds_of(std::span<const TensorSpec> tensors);

/// Returns the number of projections that a tensor holds by the last word of its name: 3 for q, k
/// and v, 2 for k and v or for gate and up. Returns 0 for other names.
int fused_parts(const TensorKind& kind);

}  // namespace shardtool::mapping
