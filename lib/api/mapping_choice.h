#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/api/transform.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolve.h"

namespace shardtool::api {

/// A mapping that was chosen and applied to a checkpoint.
struct AppliedMapping {
  mapping::Mapping mapping;
  mapping::Resolution resolution;
  std::vector<TensorSpec> specs;
};

/// The config.json that a choice names, else the one beside the weights; nothing when there is
/// none. Throws kConfig.
std::optional<mapping::ModelConfig> model_config(const MappingChoice& choice,
                                                 const LogicalCheckpoint& source);

/// The preset that config.json or, without one, the tensors' names call for; nothing when none
/// does.
std::optional<std::string> fitting_preset(const std::optional<mapping::ModelConfig>& config,
                                          std::span<const TensorSpec> tensors);

/// The mapping that a choice names: the file, the preset, the documents in the source's manifest,
/// or the preset that config.json or the tensors' names call for; followed by the family of
/// quantised or adapter tensors that their configs name. Throws kConfig when nothing fits,
/// kUnsupported for an unknown family.
mapping::Mapping choose_mapping(const MappingChoice& choice, const LogicalCheckpoint& source);

/// What was typed; where that names neither a mapping nor a mesh, over the mesh that shards have.
MappingChoice over_own_mesh(const LogicalCheckpoint& source, const MappingChoice& typed);

/// The part of a choice that resolve takes.
mapping::ResolveOptions resolve_options(const MappingChoice& choice);

/// choose_mapping, then resolve; `report` is resolve's.
AppliedMapping apply_mapping(const MappingChoice& choice, const LogicalCheckpoint& source,
                             const std::function<void(Error)>& report = nullptr);

/// The documents as the manifest stores them, and back. Throws kManifestInvalid.
std::string mapping_to_json(const mapping::Mapping& mapping);
mapping::Mapping mapping_from_json(const std::string& json, const std::string& manifest_path);

}  // namespace shardtool::api
