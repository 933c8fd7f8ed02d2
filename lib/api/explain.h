#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/api/inspect.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/layout/axis_expr.h"

namespace shardtool::api {

struct ExplainOptions {
  std::string source;
  std::string tensor;
  MappingChoice mapping;
};

struct ExplainAxis {
  std::string logical;
  std::string expression;
  std::string over;  ///< mesh axes, "tp" or "nothing"
  i64 extent = 0;
  i64 physical_size = 1;  ///< devices along `over` (Haliax: physical_axis_size)
  /// Extent with the padding of the shards; without padding, rounded up to physical_size (Haliax:
  /// round_axis_for_partitioning).
  i64 rounded = 0;
  /// The padding of the slices has copies of elements: of a refined block, or of the last one.
  bool has_copies = false;
};

/// Describes an axis that `expr` cuts over these mesh axes.
ExplainAxis explain_axis(std::string logical, const layout::AxisExpr& expr, const mesh::Over& over,
                         i64 extent, const mesh::Mesh& mesh);

struct ExplainReport {
  InspectTensor tensor;
  mesh::Mesh mesh;
  std::string rule;
  std::string rule_place;  ///< "mapping.json:12:5 /rules/3"
  std::string why;         ///< one sentence
  std::vector<ExplainAxis> axes;
  std::shared_ptr<const StoredPart> part_of;  ///< null: the tensor is stored by itself
  std::vector<std::string> alterations;       ///< padding, refined or shared blocks
};

/// Explains one tensor: its rule, its expression per axis, every device's slices, and the reason.
/// Throws kUnknownName with suggestions if the checkpoint has no such tensor.
ExplainReport explain(const ExplainOptions& options);

}  // namespace shardtool::api
