#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

/// A mapping file to start from.
struct InitialMapping {
  std::string text;
  /// What names have in common (`name_form`) where no preset says anything: each has a rule that
  /// replicates it, to be edited.
  std::vector<std::string> replicated;
};

/// Extends the preset, with the mesh and every axis of the preset spelled out, and resolves to what
/// the preset resolves to. Without a preset ("") every tensor is one that no preset knows. `config`
/// may be nullptr. Throws kUnknownName.
InitialMapping init_mapping(const ModelConfig* config, std::string_view preset,
                            const mesh::Mesh& mesh, std::span<const TensorSpec> tensors);

}  // namespace shardtool::mapping
