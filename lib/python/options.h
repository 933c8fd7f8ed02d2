#pragma once

#include <optional>
#include <vector>

#include "lib/api/transform.h"
#include "lib/python/convert.h"

namespace shardtool::python {

/// Keywords mesh, mapping, preset, axes, model_config, settings, require_even and
/// allow_empty_shards. Throws kUsage for a mapping with a preset.
api::MappingChoice mapping_choice(const Keywords& keywords);
/// The same; nullopt if none of mesh, mapping, preset, axes, settings and model_config was given.
std::optional<api::MappingChoice> given_mapping(const Keywords& keywords);
/// Keywords max_memory, in bytes, and threads.
void set_resources(const Keywords& keywords, exec::Resources& resources);
/// Keyword ranks; without it, none are named and all are written. Throws kUsage for an empty list,
/// and for one that names a rank twice.
std::vector<i64> ranks_of(const Keywords& keywords);
/// Keyword share: "3/8", (3, 8), or as a scheduler numbers this process, "auto". Throws kUsage.
std::optional<api::Share> share_of(const Keywords& keywords);
/// Keywords layout, dtype, dequantize, max_file_size, force, resume, verify, dry_run, sha256,
/// copy_side_files and share, and the resources. Throws kUsage for a dtype that is no cast.
api::WriteOptions write_options(std::string output, const Keywords& keywords);

}  // namespace shardtool::python
