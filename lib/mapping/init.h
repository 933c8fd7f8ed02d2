#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shardtool/base/tensor_spec.h"
#include "shardtool/mapping/config.h"
#include "shardtool/mesh/mesh.h"

namespace shardtool::mapping {

/// The text of a mapping file that extends the preset, with the mesh and every axis of the preset
/// spelled out; it resolves to what the preset resolves to. Tensors that the preset does not know
/// get a rule of their own that replicates them, to be edited. Throws kUnknownName.
std::string init_mapping(const ModelConfig& config, std::string_view preset, const mesh::Mesh& mesh,
                         std::span<const TensorSpec> tensors);

}  // namespace shardtool::mapping
