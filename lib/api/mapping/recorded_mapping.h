#pragma once

#include <optional>
#include <string>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transform.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::api {

/// True if the choice names no mapping and the source's manifest records one.
bool is_recorded(const MappingChoice& choice, const LogicalCheckpoint& source);

/// Adds the options that the manifest records beside its mapping, where the choice takes that.
MappingChoice with_recorded_options(const MappingChoice& typed, const LogicalCheckpoint& source);

/// Converts the documents to and from their form in the manifest. Throws kManifestInvalid.
std::string mapping_to_json(const mapping::Mapping& mapping);
mapping::Mapping mapping_from_json(const std::string& json, const std::string& manifest_path);

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

/// Throws kManifestInvalid if the mapping that the manifest records contradicts its slices.
/// `resolution` is that of the recorded mapping over the manifest's mesh; null: it is resolved.
void refuse_contradiction(const LogicalCheckpoint& source, const mapping::Mapping& recorded,
                          const mapping::ModelConfig* model, const mapping::Resolution* resolution);

}  // namespace shardtool::api
