#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/explain.h"
#include "lib/api/transform.h"

namespace shardtool::api {

struct AxisOptions {
  std::string name;         ///< a logical axis of the mapping
  std::optional<i64> size;  ///< its extent; nullopt: the one that the mapping declares
  MappingChoice mapping;    ///< a file or a preset
};

struct AxisReport {
  mesh::Mesh mesh;
  ExplainAxis axis;
  std::vector<std::string> slices;  ///< by rank: the indices that it holds
};

/// Cuts one logical axis without a checkpoint. Throws kUsage without a mapping or a size,
/// kUnknownName for an axis that the mapping lacks, and the errors of loading a mapping and cutting
/// an axis.
AxisReport axis(const AxisOptions& options);

}  // namespace shardtool::api
