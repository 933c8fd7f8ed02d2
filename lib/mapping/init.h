#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

/// Text of a new mapping file, for a user to edit.
struct InitialMapping {
  std::string text;
  /// Forms of names (`name_form`) that no preset covers. The file replicates each by a rule that
  /// the user is to edit.
  std::vector<std::string> replicated;
};

/// Writes a mapping file that extends the preset, spells out the mesh and every axis of the preset,
/// and resolves to the same layouts. An empty `preset` covers no tensor. `config` may be null.
/// Throws kUnknownName.
InitialMapping init_mapping(const ModelConfig* config, std::string_view preset,
                            const mesh::Mesh& mesh, std::span<const TensorSpec> tensors);

}  // namespace shardtool::mapping
