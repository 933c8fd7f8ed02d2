#pragma once

#include <span>

#include "lib/base/error.h"
#include "lib/ops/bound_op.h"

namespace shardtool::ops {

/// The widths of an op's inputs, in features, for check() of the op. All checks throw
/// kShapeMismatch with the op's place.
class Widths {
 public:
  Widths(const ModelSizes& model, const BoundOp& bound, std::span<const i64> widths)
      : model_(model), op_(*bound.op), widths_(widths) {}

  std::span<const i64> given() const { return widths_; }
  i64 size(const Dim& dim) const { return model_.size(dim); }
  /// Returns a size that must be above 0.
  i64 positive(const Dim& dim) const;
  void exactly(size_t input, i64 wanted) const;
  void in_units(size_t input, i64 unit) const;
  /// Requires that all widths divide the widest one.
  void meet() const;
  /// Requires that other inputs have one number per `unit` features of the first.
  void sums_of_the_first(const Dim& unit) const;

  Error misfit(size_t input, const std::string& wanted) const;
  Error error(const std::string& why) const;

 private:
  const ModelSizes& model_;
  const Op& op_;
  std::span<const i64> widths_;
};

/// Throws kShapeMismatch with its place if the widths of an op's inputs contradict its sizes.
/// `widths` are in features.
void check_widths(const ModelSizes& model, const BoundOp& bound, std::span<const i64> widths);

}  // namespace shardtool::ops
