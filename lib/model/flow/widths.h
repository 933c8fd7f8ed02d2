#pragma once

#include <span>

#include "lib/model/bind.h"

namespace shardtool::model {

/// Throws kShapeMismatch, with its place, where an op reads values of other widths than its sizes
/// say: `widths` are the features of its inputs.
void check_widths(const Model& model, const BoundOp& bound, std::span<const i64> widths);

}  // namespace shardtool::model
