#pragma once

#include <span>
#include <vector>

#include "lib/ops/bound_op.h"
#include "lib/plan/placement/op_rules.h"

/// The table of placement rules. Each op's rules() lists its legal placements along one mesh axis.
/// Walk::place follows them, and the planner of ops chooses among them.
///
/// A row's operands are the op's inputs, then its weights in the order of BoundOp::weights,
/// including absent ones; its result is the placement of all outputs. Values have the axes [tokens,
/// features]. Weights have their stored axes, after an axis of experts or heads if these are
/// tensors of their own. A whole operand may always be cut for free.
namespace shardtool::ops {

inline const plan::Placement kWhole = plan::Placement::replicated();
/// S(0): every device has its own tokens.
inline const plan::Placement kTokens = plan::Placement::sharded(0);
/// S(1): the features are cut.
inline const plan::Placement kCut = plan::Placement::sharded(1);
inline const plan::Placement kSum = plan::Placement::partial();

/// One use of an op: the sizes that its rules depend on.
class RuleSite {
 public:
  /// `widths` are the features of the inputs. The arguments outlive the site.
  RuleSite(const ModelSizes& model, const BoundOp& bound, std::span<const i64> widths)
      : model_(model), bound_(bound), widths_(widths) {}

  i64 size(const Dim& dim) const { return model_.size(dim); }
  const BoundOp& bound() const { return bound_; }
  size_t inputs() const { return widths_.size(); }
  size_t weights() const { return bound_.weights.size(); }
  i64 width(size_t input) const { return widths_[input]; }
  /// Returns true if the weight is a list of tensors, one per expert or head.
  bool is_list(size_t weight) const { return bound_.weights[weight].size() > 1; }

  /// Row with these inputs and whole weights.
  plan::OpRow row(std::vector<plan::Placement> in, plan::Placement result) const;
  /// Row with these inputs and weights.
  plan::OpRow row(std::vector<plan::Placement> in, const std::vector<plan::Placement>& weights,
                  plan::Placement result) const;
  /// Row with all inputs in one placement and whole weights.
  plan::OpRow all(plan::Placement in, plan::Placement result) const {
    return row(std::vector<plan::Placement>(inputs(), in), result);
  }
  /// Rules of a unary op by the planner's rules of its first input: other operands are whole.
  std::vector<plan::OpRow> unary(const std::vector<plan::OpRow>& rules) const;

  /// Everything whole.
  std::vector<plan::OpRow> whole() const { return {all(kWhole, kWhole)}; }
  /// Whole, or every device with its own tokens.
  std::vector<plan::OpRow> by_tokens() const {
    return {all(kWhole, kWhole), all(kTokens, kTokens)};
  }
  /// The rules of nonlinear elementwise ops whose weights have one number per run of features.
  std::vector<plan::OpRow> with_weights() const;

 private:
  const ModelSizes& model_;
  const BoundOp& bound_;
  std::span<const i64> widths_;
};

/// Returns the rules of an op.
std::vector<plan::OpRow> rules_of(const RuleSite& site);

}  // namespace shardtool::ops
