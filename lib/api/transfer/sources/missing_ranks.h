#pragma once

#include <functional>
#include <string>

#include "lib/base/error.h"
#include "lib/check/foreign_shards.h"
#include "lib/layouts/engine_layout.h"
#include "lib/mesh/mesh.h"

namespace shardtool::api {

/// Number of ranks of which the files' names tell: one more than the highest, or as many as a name
/// counts.
i64 ranks_by_names(const check::ForeignShards& shards);

/// Number of ranks where files of the last ones may be missing: ranks_by_names if every name counts
/// the ranks or if it `fits` the shapes of the parts, else the smallest above it that divides an
/// extent of config.json's model into one of a part and that fits. Returns ranks_by_names if none
/// does. Each call of `fits` tries all shapes, which takes long for a large model.
i64 ranks_of(const check::ForeignShards& shards, const std::function<bool(i64 ranks)>& fits);

/// Throws kCoverage with the names of the missing files unless every device of the mesh has a file.
void require_all_ranks(const check::ForeignShards& shards, const layouts::EngineLayout& layout,
                       const mesh::Mesh& mesh, const std::string& location);

}  // namespace shardtool::api
