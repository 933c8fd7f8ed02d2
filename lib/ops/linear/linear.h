#pragma once

#include <optional>

#include "lib/layout/strategy.h"
#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

namespace shardtool::ops {

/// y = x W^T + b, with W [rows, columns] as in nn.Linear, or [columns, rows] (kInOut). The columns
/// may span several stored axes, as for a convolution whose stride equals its kernel size; then x
/// has its features in the order of these axes. With groups, the rows of a group read only the
/// features of their group.
struct Linear {
  Dim rows, columns;
  layout::Kernel kernel = layout::Kernel::kOutIn;
  std::optional<Dim> groups;  ///< number of groups of features and rows; `columns` is for one group
};
void decode(Linear& op, OpDecoder& in);
/// Decodes a linear op whose result is the model's.
void decode_logits(Linear& op, OpDecoder& in);
void check(const Linear& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Linear& op, const RuleSite& site);
Value place(const Linear& op, Walk& walk, const BoundOp& bound);

}  // namespace shardtool::ops
