#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/propose/kinds.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

/// Evidence for a proposed rule.
enum class Certainty {
  kSure,     ///< name, shape, the tensors beside it and config.json agree
  kLikely,   ///< some of these say nothing, none disagrees
  kGuess,    ///< the order inside the tensor is not known: compare with the model's code
  kUnknown,  ///< the use of the tensor is not known, so every rank gets it whole
};
std::string_view to_string(Certainty certainty);

/// One rule of a proposed mapping, for all tensors whose names have one form.
struct ProposedRule {
  std::string form;  ///< see name_form
  Role role = Role::kUnknown;
  std::vector<std::string> dims;  ///< per tensor axis: "heads*head_dim", or empty for whole; no
                                  ///< entries: replicate
  bool is_reduced_bias = false;   ///< a bias that is added after the reduction
  Certainty certainty = Certainty::kUnknown;
  std::string reason;        ///< "query projection: 12 heads of 8 (config.n_heads)"
  std::string tensors = {};  ///< "4 of BF16 [96, 96]"
};

/// Rules for a model that no preset knows, from names, shapes and config.json.
struct Proposal {
  std::map<std::string, std::string> axes;  ///< name -> JSON text
  std::vector<ProposedRule> rules;          ///< by form
};

/// Proposes a rule for every form of name. `config` may be null. Axes are cut over the mesh axes tp
/// (and ep for experts) if the mesh has them.
Proposal propose(const ModelConfig* config, std::span<const TensorSpec> tensors,
                 const mesh::Mesh& mesh);

}  // namespace shardtool::mapping
