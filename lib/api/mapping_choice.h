#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transform.h"
#include "lib/layouts/engine_layout.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/propose/doubtful_cuts.h"
#include "lib/mapping/resolve/output_tensors.h"
#include "lib/mapping/resolve/resolve.h"

namespace shardtool::api {

/// A mapping with its resolution for a checkpoint.
struct AppliedMapping {
  mapping::Mapping mapping;
  mapping::Resolution resolution;
  std::vector<TensorSpec> specs;
  std::string axes = {};  ///< entry of the mapping's "layouts", or empty
  bool allows_empty_shards = false;
  std::string config = {};           ///< path of the chosen config.json; empty: the source's
  std::string layout{kPlainLayout};  ///< label of an engine's layout, or plain
  std::optional<layouts::FileNames> engine_files = {};  ///< of the layout; absent: plain names
  layouts::StoredForm form = {};
  /// Tensors as the files hold them; null: every tensor by itself.
  std::shared_ptr<const std::vector<mapping::OutputTensor>> output = {};
  std::vector<mapping::DoubtfulCut> doubts = {};  ///< cuts that are probably wrong
  std::vector<mapping::LeftOut> left_out = {};    ///< from the output, by index into `specs`
};

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

/// Returns the typed choice. If it names neither a mapping nor a mesh, it gets the mesh of the
/// shards.
MappingChoice over_own_mesh(const LogicalCheckpoint& source, const MappingChoice& typed);

/// True if the name of a layout is that of a mapping file: it has a slash or ends in ".json". Other
/// names are entries of a mapping's "layouts".
bool names_file(const std::string& layout);

/// Returns `base` with that file as its mapping, or with that entry of its mapping's "layouts".
/// Throws kUnknownName, and the errors of choose_mapping.
MappingChoice at_layout(const MappingChoice& base, const std::string& layout,
                        const LogicalCheckpoint& source);

/// A rank that holds another region of a tensor than a mapping gives it.
struct Displaced {
  std::string tensor;
  i64 rank = 0;
  std::optional<index::Region> given;  ///< nullopt: the mapping gives the rank nothing
  index::Region stored;
};

/// Returns the first rank of a tensor whose shard has other elements than the resolution gives it,
/// in any order. Requires source.is_sharded() and the resolution's tensors to be the source's.
std::optional<Displaced> first_displaced(const LogicalCheckpoint& source,
                                         const mapping::Resolution& resolution);

/// Adds the documents of --axis-mapping and --set. Throws the errors of mapping::with_axis_mapping
/// and mapping::with_settings.
mapping::Mapping with_typed_documents(mapping::Mapping mapping, const MappingChoice& choice);

/// Returns the fields of a choice that resolve takes.
mapping::ResolveOptions resolve_options(const MappingChoice& choice);

/// Combines choose_mapping and resolve; `report` is passed to resolve.
AppliedMapping apply_mapping(const MappingChoice& choice, const LogicalCheckpoint& source,
                             const std::function<void(Error)>& report = nullptr);

/// Converts the documents to and from their form in the manifest. Throws kManifestInvalid.
std::string mapping_to_json(const mapping::Mapping& mapping);
mapping::Mapping mapping_from_json(const std::string& json, const std::string& manifest_path);

}  // namespace shardtool::api
