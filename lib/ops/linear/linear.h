#pragma once

#include <optional>

#include "lib/layout/strategy.h"
#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

namespace shardtool::ops {

/// y = x W^T + b, with W [rows, columns] as nn.Linear stores it, or [columns, rows] (kInOut). The
/// columns may span several stored axes, as those of a convolution whose stride is its kernel; x
/// then has its features in the order of these axes. With groups, the rows of a group read only the
/// features of their group.
struct Linear {
  Dim rows, columns;
  layout::Kernel kernel = layout::Kernel::kOutIn;
  std::optional<Dim> groups;  ///< of features and rows; `columns` are those of one group
};
void decode(Linear& op, OpDecoder& in);
/// A linear op whose result leaves the model.
void decode_logits(Linear& op, OpDecoder& in);
void check(const Linear& op, const Widths& widths);
Value place(const Linear& op, Walk& walk, const BoundOp& bound);

}  // namespace shardtool::ops
