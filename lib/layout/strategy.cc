#include "lib/layout/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"

namespace shardtool::layout {
namespace {

using enum StrategyKind;
constexpr auto kNames = std::to_array<std::pair<StrategyKind, std::string_view>>({
    {kReplicate, "replicate"},
    {kRowwise, "rowwise"},
    {kColumnwise, "columnwise"},
    {kAxiswise, "axiswise"},
    {kColumnParallel, "column_parallel"},
    {kRowParallel, "row_parallel"},
    {kHeadAwareColumnwise, "head_aware_columnwise"},
    {kHeadAwareRowwise, "head_aware_rowwise"},
    {kStackedQkv, "stacked_qkv"},
    {kGateUp, "gate_up"},
    {kSegmented, "segmented"},
    {kExpertParallel, "expert_parallel"},
    {kTensorParallel, "tensor_parallel"},
});

size_t resolve_axis(i64 axis, const Shape& shape, StrategyKind kind) {
  const i64 rank = static_cast<i64>(shape.size());
  const i64 resolved = axis < 0 ? axis + rank : axis;
  if (resolved < 0 || resolved >= rank) {
    throw Error(ErrorCode::kShapeMismatch,
                fmt::format("{} cuts axis {}, but the tensor {} has rank {}", to_string(kind), axis,
                            shardtool::to_string(shape), rank))
        .help("use a strategy or an axis that fits, or \"replicate\"");
  }
  return static_cast<size_t>(resolved);
}

void require_extent(StrategyKind kind, i64 expected, i64 found, const std::string& formula,
                    const std::string& hint) {
  if (expected == found) return;
  throw Error(ErrorCode::kStrategy, fmt::format("{} expects an axis of {} = {}, found {}",
                                                to_string(kind), formula, expected, found))
      .help(hint);
}

}  // namespace

std::string_view to_string(StrategyKind kind) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [kind](const auto& row) { return row.first == kind; })
      ->second;
}

std::optional<StrategyKind> parse_strategy_kind(std::string_view name) {
  for (const auto& [kind, text] : kNames) {
    if (text == name) return kind;
  }
  return std::nullopt;
}

ShardingStrategy::ShardingStrategy(StrategyKind kind, Form form, std::optional<i64> axis, Over over,
                                   SplitRule rule)
    : kind_(kind), form_(form), axis_(axis), over_(std::move(over)), rule_(rule) {}

ShardingStrategy ShardingStrategy::replicate() {
  return {kReplicate, Form::kNone, std::nullopt, {}, kBalanced};
}

ShardingStrategy ShardingStrategy::rowwise(Over over, SplitRule rule) {
  return {kRowwise, Form::kEven, 0, std::move(over), rule};
}

ShardingStrategy ShardingStrategy::columnwise(Over over, SplitRule rule) {
  return {kColumnwise, Form::kEven, 1, std::move(over), rule};
}

ShardingStrategy ShardingStrategy::axiswise(i64 axis, Over over, SplitRule rule) {
  return {kAxiswise, Form::kEven, axis, std::move(over), rule};
}

ShardingStrategy ShardingStrategy::column_parallel(Kernel kernel, Over over, SplitRule rule) {
  return {kColumnParallel, Form::kEven, kernel == Kernel::kOutIn ? 0 : 1, std::move(over), rule};
}

ShardingStrategy ShardingStrategy::row_parallel(Kernel kernel, Over over, SplitRule rule) {
  return {kRowParallel, Form::kEven, kernel == Kernel::kOutIn ? 1 : 0, std::move(over), rule};
}

ShardingStrategy ShardingStrategy::head_aware_columnwise(i64 num_heads, i64 head_dim, Over over,
                                                         SplitRule rule) {
  ShardingStrategy s(kHeadAwareColumnwise, Form::kSegments, 1, std::move(over), rule);
  s.segments_ = {Segment::head_aware(num_heads, head_dim)};
  return s;
}

ShardingStrategy ShardingStrategy::head_aware_rowwise(i64 num_heads, i64 head_dim, Over over,
                                                      SplitRule rule) {
  ShardingStrategy s(kHeadAwareRowwise, Form::kSegments, 0, std::move(over), rule);
  s.segments_ = {Segment::head_aware(num_heads, head_dim)};
  return s;
}

ShardingStrategy ShardingStrategy::stacked_qkv(QkvHeads heads, Over over, i64 axis,
                                               SplitRule rule) {
  ShardingStrategy s(kStackedQkv, Form::kQkv, axis, std::move(over), rule);
  s.heads_ = heads;
  return s;
}

ShardingStrategy ShardingStrategy::gate_up(Over over, i64 axis, GateUpOrder order, i64 parts,
                                           SplitRule rule) {
  ShardingStrategy s(kGateUp, Form::kGateUp, axis, std::move(over), rule);
  s.gate_up_order_ = order;
  s.parts_ = parts;
  return s;
}

ShardingStrategy ShardingStrategy::segmented(std::vector<Segment> segments, Over over, i64 axis,
                                             SplitRule rule) {
  ShardingStrategy s(kSegmented, Form::kSegments, axis, std::move(over), rule);
  s.segments_ = std::move(segments);
  return s;
}

ShardingStrategy ShardingStrategy::expert_parallel(Over over, SplitRule rule) {
  return {kExpertParallel, Form::kEven, 0, std::move(over), rule};
}

ShardingStrategy ShardingStrategy::tensor_parallel(Over over) {
  return {kTensorParallel, Form::kMarker, std::nullopt, std::move(over), kBalanced};
}

AxisExpr ShardingStrategy::cut_segments(i64 extent) const {
  std::vector<AxisExpr> sections;
  std::string formula;
  for (const Segment& segment : segments_) {
    sections.push_back(scale(split(segment.units, over_, rule_), segment.unit));
    formula += fmt::format("{}{}", formula.empty() ? "" : " + ", segment.units);
    if (segment.unit != 1) formula += fmt::format("*{}", segment.unit);
  }
  AxisExpr axis = concat(std::move(sections));
  require_extent(kind_, axis.size(), extent, formula,
                 "correct num_heads and head_dim (or the segments) for this tensor");
  return axis;
}

AxisExpr ShardingStrategy::cut_qkv(i64 extent, const mesh::Mesh& mesh) const {
  const auto& [heads, kv_heads, dim, order, small] = heads_;
  if (heads < 1 || kv_heads < 1 || dim < 1) {
    throw Error(
        ErrorCode::kStrategy,
        fmt::format("stacked_qkv needs heads, found {} heads and {} KV heads of {} elements", heads,
                    kv_heads, dim));
  }
  // Sizes come from files: the expression of the whole axis counts them without overflow.
  const AxisExpr kv = scale(whole(kv_heads), dim);
  require_extent(kind_, concat({scale(whole(heads), dim), kv, kv}).size(), extent,
                 "(num_heads + 2*num_kv_heads)*head_dim",
                 "for grouped-query attention give num_kv_heads; Q, K and V are on this axis");
  if (order == QkvOrder::kPerHead && heads != kv_heads) {
    throw Error(ErrorCode::kStrategy,
                fmt::format("order per_head needs as many KV heads as heads, found {} and {}",
                            kv_heads, heads))
        .help("grouped layouts are \"per_kv_group\" or \"concat\"");
  }
  HeadCounts counts{heads, kv_heads};
  counts.are_groups_whole = order == QkvOrder::kPerKvGroup;
  const HeadCut cut = cut_heads(counts, mesh, over_, rule_, small);
  if (order != QkvOrder::kConcat) return scale(cut.kv, (heads / kv_heads + 2) * dim);
  return concat({scale(cut.queries, dim), scale(cut.kv, dim), scale(cut.kv, dim)});
}

AxisExpr ShardingStrategy::cut_gate_up(i64 extent) const {
  if (parts_ < 1 || extent % parts_ != 0) {
    throw Error(
        ErrorCode::kStrategy,
        fmt::format("gate_up needs an axis that is a multiple of {}, found {}", parts_, extent))
        .help("gate_up cuts a fused gate and up projection; correct its axis or its parts");
  }
  const AxisExpr half = split(extent / parts_, over_, rule_);
  return gate_up_order_ == GateUpOrder::kStacked ? repeat(parts_, half) : scale(half, parts_);
}

AxisExpr ShardingStrategy::cut(i64 extent, const mesh::Mesh& mesh) const {
  switch (form_) {
    case Form::kEven:
      return split(extent, over_, rule_);
    case Form::kSegments:
      return cut_segments(extent);
    case Form::kQkv:
      return cut_qkv(extent, mesh);
    case Form::kGateUp:
      return cut_gate_up(extent);
    case Form::kNone:
    case Form::kMarker:
      break;
  }
  throw Error(ErrorCode::kInternal, "a strategy without an axis was applied to one");
}

std::vector<AxisExpr> ShardingStrategy::apply(const Shape& shape, const mesh::Mesh& mesh) const {
  if (form_ == Form::kMarker) {
    throw Error(ErrorCode::kStrategy, "tensor_parallel describes a module, not one tensor")
        .help("use a preset (\"extends\": [\"preset:llama\"]), or one strategy per tensor");
  }
  std::vector<AxisExpr> axes;
  for (const i64 extent : shape) axes.push_back(whole(extent));
  const bool is_bias = shape.size() == 1;
  const bool is_linear = kind_ == kColumnParallel || kind_ == kRowParallel;
  if (is_linear && shape.size() > 2) {
    throw Error(ErrorCode::kShapeMismatch,
                fmt::format("{} cuts kernels of rank 2 and biases, found {}", to_string(kind_),
                            shardtool::to_string(shape)))
        .help("name the axis: {\"type\": \"axiswise\", \"axis\": N}");
  }
  if (!axis_ || (is_bias && kind_ == kRowParallel)) return axes;
  const size_t axis = is_bias && kind_ == kColumnParallel ? 0 : resolve_axis(*axis_, shape, kind_);
  axes[axis] = cut(shape[axis], mesh);
  return axes;
}

}  // namespace shardtool::layout
