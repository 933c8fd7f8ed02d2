#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/propose/propose.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

/// A rule of a new mapping for a model that no preset knows, and its evidence.
struct ProposalNote {
  std::string form;  ///< see name_form
  Certainty certainty = Certainty::kUnknown;
  std::string reason;
};

/// Text of a new mapping file, for a user to edit.
struct InitialMapping {
  std::string text;
  /// Forms of names (`name_form`) that the file replicates because neither a preset nor a proposal
  /// covers them.
  std::vector<std::string> replicated;
  std::vector<ProposalNote> proposed;  ///< without a preset: every rule of the file
};

/// Writes a mapping file that extends the preset, spells out the mesh and every axis of the preset,
/// and resolves to the same layouts. With an empty `preset`, proposes axes and
/// rules from names, shapes and config (see propose); each rule's note says how sure it is.
/// `config` may be null. Throws kUsage for an unknown preset.
InitialMapping init_mapping(const ModelConfig* config, std::string_view preset,
                            const mesh::Mesh& mesh, std::span<const TensorSpec> tensors);

}  // namespace shardtool::mapping
