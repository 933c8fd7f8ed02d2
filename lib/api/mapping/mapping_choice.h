#pragma once

#include <optional>
#include <span>
#include <string>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transform.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolve.h"

namespace shardtool::api {

/// True for errors about a mapping or a mesh (exit status 3): another one may work.
bool is_mapping_error(const Error& error);
/// True for errors about what was read (exit status 4).
bool is_input_error(const Error& error);

/// Loads the chosen config.json, else the one in the weights' folder; nullopt if there is none.
/// Throws kConfig.
std::optional<mapping::ModelConfig> model_config(const MappingChoice& choice,
                                                 const LogicalCheckpoint& source);

/// Returns the preset for config.json or, without a config, for the tensors' names; nullopt if no
/// preset fits.
std::optional<std::string> fitting_preset(const std::optional<mapping::ModelConfig>& config,
                                          std::span<const TensorSpec> tensors);

/// Returns the chosen mapping: the file, the preset, the documents in the source's manifest, or the
/// preset that fits config.json or the tensors' names. Adds the document for quantised or adapter
/// tensors that their configs name. Throws kConfig if no mapping fits, kUnsupported for an unknown
/// storage family.
mapping::Mapping choose_mapping(const MappingChoice& choice, const LogicalCheckpoint& source);

/// True if all tensors are named as those of a PEFT adapter, and adapter_config.json is beside the
/// opened files: they change some weights of a model, and lack the others.
bool is_adapter(const format::Checkpoint& opened, std::span<const TensorSpec> tensors);

/// True if the choice says how to cut, and not only which config.json to read.
bool says_cut(const MappingChoice& choice);

/// Returns the typed choice. If it names neither a mapping nor a mesh, it gets the mesh of the
/// shards.
MappingChoice over_own_mesh(const LogicalCheckpoint& source, const MappingChoice& typed);

/// True if the name of a layout is that of a mapping file: it has a slash or ends in ".json". Other
/// names are entries of a mapping's "layouts".
bool names_file(const std::string& layout);

/// Returns the choice by whose rules of "read" a source is shown: `base` or, if it names no file,
/// the file that `layout` names, if it does.
MappingChoice reading_choice(const MappingChoice& base, const std::string& layout);

/// Returns `base` with that file as its mapping, or with that entry of its mapping's "layouts".
/// Throws kUnknownName, and the errors of choose_mapping.
MappingChoice at_layout(const MappingChoice& base, const std::string& layout,
                        const LogicalCheckpoint& source);

/// Adds the documents of --axis-mapping and --set. Throws the errors of mapping::with_axis_mapping
/// and mapping::with_settings.
mapping::Mapping with_typed_documents(mapping::Mapping mapping, const MappingChoice& choice);

/// Returns the fields of a choice that resolve takes.
mapping::ResolveOptions resolve_options(const MappingChoice& choice);

}  // namespace shardtool::api
