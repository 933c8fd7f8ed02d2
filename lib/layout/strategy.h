#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/shape.h"
#include "lib/layout/axis_expr.h"
#include "lib/layout/head_groups.h"
#include "lib/mesh/mesh.h"

namespace shardtool::layout {

/// Strategies under the names of MAX (max.graph.ShardingStrategy); column_parallel and row_parallel
/// are the names in Megatron and Hugging Face. The kind is only a label; the expression defines the
/// cut.
enum class StrategyKind {
  kReplicate,
  kRowwise,
  kColumnwise,
  kAxiswise,
  kColumnParallel,
  kRowParallel,
  kHeadAwareColumnwise,
  kHeadAwareRowwise,
  kStackedQkv,
  kGateUp,
  kSegmented,
  kExpertParallel,
  kTensorParallel,
};
std::string_view to_string(StrategyKind kind);
std::optional<StrategyKind> parse_strategy_kind(std::string_view name);

/// Storage order of a linear layer's kernel: PyTorch's nn.Linear is [out, in], GPT-2's Conv1D [in,
/// out].
enum class Kernel { kOutIn, kInOut };

/// Order of a fused QKV axis: Q|K|V blocks; q,k,v per head; (g queries, k, v) per KV group.
enum class QkvOrder { kConcat, kPerHead, kPerKvGroup };

/// Order of a fused gate and up projection: gate|up blocks, or g0,u0,g1,u1,...
enum class GateUpOrder { kStacked, kInterleaved };

/// One section of an axis: `units` indivisible runs of `unit` elements.
struct Segment {
  i64 units = 0;
  i64 unit = 1;
  /// Section cut in elements.
  static Segment even(i64 size) { return {size, 1}; }
  /// Section cut in heads.
  static Segment head_aware(i64 num_heads, i64 head_dim) { return {num_heads, head_dim}; }
};

/// Heads of a fused attention projection.
struct QkvHeads {
  i64 num_heads = 0;
  i64 num_kv_heads = 0;
  i64 head_dim = 0;
  QkvOrder order = QkvOrder::kConcat;
  SmallPolicy small = SmallPolicy::kError;
};

/// Strategy that cuts one axis of a tensor over mesh axes, or no axis.
class ShardingStrategy {
 public:
  static ShardingStrategy replicate();
  /// Cuts axis 0 of the stored tensor (MAX's name: Megatron's column-parallel for [out, in]).
  static ShardingStrategy rowwise(Over over, SplitRule rule = kBalanced);
  /// Cuts axis 1 of the stored tensor.
  static ShardingStrategy columnwise(Over over, SplitRule rule = kBalanced);
  /// Cuts any axis; negative counts from the end.
  static ShardingStrategy axiswise(i64 axis, Over over, SplitRule rule = kBalanced);
  /// Cuts output features: axis 0 of [out, in], axis 1 of [in, out]; a bias (rank 1) is cut.
  static ShardingStrategy column_parallel(Kernel kernel, Over over, SplitRule rule = kBalanced);
  /// Cuts input features: axis 1 of [out, in], axis 0 of [in, out]; a bias (rank 1) is replicated
  /// and is added after the reduction.
  static ShardingStrategy row_parallel(Kernel kernel, Over over, SplitRule rule = kBalanced);
  /// Cuts axis 1 in whole heads; the width must be num_heads * head_dim.
  static ShardingStrategy head_aware_columnwise(i64 num_heads, i64 head_dim, Over over,
                                                SplitRule rule = kBalanced);
  /// Cuts axis 0 in whole heads.
  static ShardingStrategy head_aware_rowwise(i64 num_heads, i64 head_dim, Over over,
                                             SplitRule rule = kBalanced);
  /// Cuts q, k and v, fused on one axis of (num_heads + 2 * num_kv_heads) * head_dim elements, each
  /// in whole heads as cut_heads does.
  static ShardingStrategy stacked_qkv(QkvHeads heads, Over over, i64 axis = 0,
                                      SplitRule rule = kBalanced);
  /// Cuts `parts` equal sections that are concatenated (gate | up) or interleaved by element.
  static ShardingStrategy gate_up(Over over, i64 axis = 2,
                                  GateUpOrder order = GateUpOrder::kStacked, i64 parts = 2,
                                  SplitRule rule = kBalanced);
  /// Cuts sections that together cover the axis, each independently.
  static ShardingStrategy segmented(std::vector<Segment> segments, Over over, i64 axis = 0,
                                    SplitRule rule = kBalanced);
  /// Cuts the expert dimension (axis 0) of a stacked [experts, ...] tensor.
  static ShardingStrategy expert_parallel(Over over, SplitRule rule = kBalanced);
  /// Marker for a module's tensors (a preset); applying it to one tensor is an error.
  static ShardingStrategy tensor_parallel(Over over);

  StrategyKind kind() const { return kind_; }
  bool is(StrategyKind kind) const { return kind_ == kind; }
  /// Axis that is cut, as given (negative counts from the end); nullopt for replicate and the
  /// module-level marker. column_parallel and row_parallel answer for a kernel of rank 2.
  std::optional<i64> sharded_axis() const { return axis_; }
  const Over& over() const { return over_; }

  /// One expression per axis of a tensor of this shape. Throws kShapeMismatch when the axis is out
  /// of range or the rank does not fit a linear layer, kStrategy when sizes do not fit, kGroups
  /// (stacked_qkv), and the errors of cut_heads.
  std::vector<AxisExpr> apply(const Shape& shape, const mesh::Mesh& mesh) const;

 private:
  enum class Form { kNone, kEven, kSegments, kQkv, kGateUp, kMarker };

  ShardingStrategy(StrategyKind kind, Form form, std::optional<i64> axis, Over over,
                   SplitRule rule);
  AxisExpr cut(i64 extent, const mesh::Mesh& mesh) const;
  AxisExpr cut_segments(i64 extent) const;
  AxisExpr cut_qkv(i64 extent, const mesh::Mesh& mesh) const;
  AxisExpr cut_gate_up(i64 extent) const;

  StrategyKind kind_;
  Form form_;
  std::optional<i64> axis_;
  Over over_;
  SplitRule rule_;
  std::vector<Segment> segments_;
  QkvHeads heads_;
  GateUpOrder gate_up_order_ = GateUpOrder::kStacked;
  i64 parts_ = 2;
};

}  // namespace shardtool::layout
