#include "lib/mapping/resolve/tensor_cut.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardtool::mapping {
namespace {

using layout::AxisExpr;
using layout::ShardingStrategy;
using layout::StrategyKind;

void require_axes(const Dim& dim, const AxisTable& axes) {
  for_each_factor(dim, [&](const Factor& factor) {
    if (!factor.axis.empty()) axes.require(factor.axis, dim.place);
  });
}

/// Adds the origin of each axis' size to an error about an extent that does not fit.
void note_sizes(Error& e, const Dim& dim, const AxisTable& axes) {
  std::vector<std::string> noted;
  for_each_factor(dim, [&](const Factor& factor) {
    const std::string origin = factor.axis.empty() ? "" : axes.size_origin(factor.axis);
    if (origin.empty() || std::find(noted.begin(), noted.end(), origin) != noted.end()) return;
    e.note("config", origin);
    noted.push_back(origin);
  });
}

/// Sizes of the axes of one dim. Each is declared, or inferred from the dim's extent.
class DimSizes {
 public:
  DimSizes(const Dim& dim, i64 extent, AxisTable& axes) : axes_(axes) {
    inferred_ = infer_size(
        dim, [&](const std::string& axis) { return axes_.declared_size(axis); }, extent);
  }
  std::optional<i64> operator()(const std::string& axis) const {
    if (inferred_ && inferred_->first == axis) return inferred_->second;
    return axes_.declared_size(axis);
  }

 private:
  AxisTable& axes_;
  std::optional<std::pair<std::string, i64>> inferred_;
};

/// Appends the cuts of axes that `to` lacks.
void append_new(const std::vector<UnitCut>& cuts, std::vector<UnitCut>& to) {
  for (const UnitCut& cut : cuts) {
    const auto same = [&](const UnitCut& other) { return other.name == cut.name; };
    if (std::none_of(to.begin(), to.end(), same)) to.push_back(cut);
  }
}

/// Returns one factor of a product, cut if its axis has mesh axes.
AxisExpr cut_factor(const Factor& factor, const Rule& rule, const DimSizes& sizes, AxisTable& axes,
                    std::vector<UnitCut>& units) {
  if (factor.axis.empty()) return layout::whole(factor.literal);
  const i64 size = sizes(factor.axis).value();
  if (!axes.is_cut(factor.axis, rule)) return layout::whole(size);
  const UnitCut& cut = axes.cut(factor.axis, size);
  append_new({cut}, units);
  return cut.units;
}

/// Returns the factors folded into one axis, the first one slowest.
AxisExpr cut_section(const FoldedAxes& section, const Rule& rule, const DimSizes& sizes,
                     AxisTable& axes, std::vector<UnitCut>& units) {
  product_of(section, 0, sizes);  // throws if the extent is out of range
  AxisExpr folded = cut_factor(section.factors.back(), rule, sizes, axes, units);
  for (size_t f = section.factors.size() - 1; f-- > 0;) {
    AxisExpr factor = cut_factor(section.factors[f], rule, sizes, axes, units);
    folded = layout::product(std::move(factor), std::move(folded));
  }
  return folded.is_sharded() ? folded : layout::whole(folded.size());
}

AxisExpr cut_dim(const Dim& dim, i64 extent, const Rule& rule, AxisTable& axes,
                 std::vector<UnitCut>& units) {
  if (dim.sections.empty()) return layout::whole(extent);
  require_axes(dim, axes);
  const DimSizes sizes(dim, extent, axes);
  std::vector<AxisExpr> sections;
  for (const FoldedAxes& section : dim.sections)
    sections.push_back(cut_section(section, rule, sizes, axes, units));
  AxisExpr expr = layout::concat(std::move(sections));
  return expr.is_sharded() ? expr : layout::whole(extent);
}

/// Returns the value of the dim's padding. Throws kStrategy if it repeats the last index and the
/// dim is not a single axis.
layout::Fill fill_of(const Dim& dim, const std::vector<UnitCut>& units) {
  for (const UnitCut& cut : units) {
    if (cut.fill == layout::Fill::kZero) continue;
    if (dim.sections.size() == 1 && dim.sections.front().factors.size() == 1) return cut.fill;
    throw Error(ErrorCode::kStrategy,
                fmt::format("the padding of '{}' repeats the last index of '{}', which is folded "
                            "with others",
                            dim.text, cut.name))
        .at(cut.place)
        .help("give the axis \"padding\": \"zero\"");
  }
  return layout::Fill::kZero;
}

mesh::Over default_over(StrategyKind kind, const Document& document, const Rule& rule,
                        const mesh::Mesh& mesh) {
  const std::string usual = kind == StrategyKind::kExpertParallel ? "ep" : "tp";
  if (mesh.has_axis(usual)) return {{usual}};
  if (document.is_preset) return {};
  if (mesh.axes().size() == 1) return {{mesh.axes()[0].name}};
  if (mesh.axes().empty() && document.may_lack_axes) return {};
  throw Error(
      ErrorCode::kUnknownName,
      fmt::format("strategy {} does not say over which mesh axis, and the mesh {} has no '{}'",
                  to_string(kind), to_string(mesh), usual))
      .at(rule.place)
      .help("add \"over\": \"NAME\" to the strategy");
}

std::vector<layout::Segment> segments_of(const StrategySpec& spec, AxisTable& axes) {
  std::vector<layout::Segment> segments;
  for (const SegmentSpec& segment : spec.segments) {
    segments.push_back(
        {axes.evaluate_size(segment.units), segment.unit ? axes.evaluate_size(*segment.unit) : 1});
  }
  return segments;
}

layout::QkvHeads heads_of(const StrategySpec& spec, AxisTable& axes) {
  const i64 heads = axes.evaluate_size(spec.num_heads.value());
  const i64 kv_heads = spec.num_kv_heads ? axes.evaluate_size(*spec.num_kv_heads) : heads;
  return {heads, kv_heads, axes.evaluate_size(spec.head_dim.value()), spec.order, spec.small};
}

ShardingStrategy make_strategy(const StrategySpec& spec, mesh::Over over, AxisTable& axes) {
  const layout::SplitRule rule = split_rule(spec.uneven, spec.pad_to);
  switch (spec.kind) {
    case StrategyKind::kReplicate:
      return ShardingStrategy::replicate();
    case StrategyKind::kRowwise:
      return ShardingStrategy::rowwise(over, rule);
    case StrategyKind::kColumnwise:
      return ShardingStrategy::columnwise(over, rule);
    case StrategyKind::kAxiswise:
      return ShardingStrategy::axiswise(spec.axis.value(), over, rule);
    case StrategyKind::kColumnParallel:
      return ShardingStrategy::column_parallel(spec.kernel, over, rule);
    case StrategyKind::kRowParallel:
      return ShardingStrategy::row_parallel(spec.kernel, over, rule);
    case StrategyKind::kExpertParallel:
      return ShardingStrategy::expert_parallel(over, rule);
    case StrategyKind::kTensorParallel:
      return ShardingStrategy::tensor_parallel(over);
    case StrategyKind::kHeadAwareColumnwise:
      return ShardingStrategy::head_aware_columnwise(axes.evaluate_size(spec.num_heads.value()),
                                                     axes.evaluate_size(spec.head_dim.value()),
                                                     over, rule);
    case StrategyKind::kHeadAwareRowwise:
      return ShardingStrategy::head_aware_rowwise(axes.evaluate_size(spec.num_heads.value()),
                                                  axes.evaluate_size(spec.head_dim.value()), over,
                                                  rule);
    case StrategyKind::kStackedQkv:
      return ShardingStrategy::stacked_qkv(heads_of(spec, axes), over, spec.axis.value_or(0), rule);
    case StrategyKind::kGateUp:
      return ShardingStrategy::gate_up(over, spec.axis.value_or(2), spec.gate_up_order, spec.parts,
                                       rule);
    case StrategyKind::kSegmented:
      return ShardingStrategy::segmented(segments_of(spec, axes), over, spec.axis.value_or(0),
                                         rule);
  }
  throw Error(ErrorCode::kInternal, "unknown strategy");
}

/// Finds the parts of an expression that distribute units: its splits and owner lists.
void collect_units(const AxisExpr& expr, std::vector<AxisExpr>& found) {
  if (const auto* scaled = std::get_if<layout::Scale>(&expr.node())) {
    collect_units(*scaled->of, found);
  } else if (const auto* sections = std::get_if<layout::Concat>(&expr.node())) {
    for (const AxisExpr& section : sections->sections) collect_units(section, found);
  } else if (expr.is_sharded()) {
    const auto same = [&](const AxisExpr& other) { return to_string(other) == to_string(expr); };
    if (std::none_of(found.begin(), found.end(), same)) found.push_back(expr);
  }
}

}  // namespace

TensorCut cut_by_dims(const Rule& rule, const Shape& shape, AxisTable& axes) {
  const auto& dims = std::get<std::vector<Dim>>(rule.cut);
  if (dims.size() != shape.size()) {
    throw Error(
        ErrorCode::kShapeMismatch,
        fmt::format("the rule has {} dims, but the tensor has rank {}", dims.size(), shape.size()))
        .help(
            "a rule has one entry of \"dims\" per axis of the tensor; give tensors of another rank "
            "a rule of their own");
  }
  TensorCut cut{{}, {}, "dims"};
  for (size_t a = 0; a < dims.size(); ++a) {
    try {
      std::vector<UnitCut> units;
      cut.axes.push_back({cut_dim(dims[a], shape[a], rule, axes, units), 1, dims[a].text});
      cut.axes.back().fill = fill_of(dims[a], units);
      append_new(units, cut.units);
    } catch (Error& e) {
      if (e.code() == ErrorCode::kShapeMismatch)
        note_sizes(e.note("axis", std::to_string(a)), dims[a], axes);
      if (!e.place()) e.at(dims[a].place);
      throw;
    }
  }
  return cut;
}

TensorCut cut_by_strategy(const Rule& rule, const Document& document, const Shape& shape,
                          AxisTable& axes) {
  const auto& spec = std::get<StrategySpec>(rule.cut);
  mesh::Over over;
  if (spec.kind != StrategyKind::kReplicate) {
    over = spec.over ? over_of(*spec.over, document.may_lack_axes, axes.mesh())
                     : default_over(spec.kind, document, rule, axes.mesh());
  }
  const auto expressions = make_strategy(spec, over, axes).apply(shape, axes.mesh());
  TensorCut cut{{}, {}, std::string(to_string(spec.kind))};
  for (size_t a = 0; a < expressions.size(); ++a) {
    const bool is_cut = expressions[a].is_sharded();
    cut.axes.push_back({is_cut ? expressions[a] : layout::whole(shape[a]), 1, {}});
    std::vector<AxisExpr> dealt;
    if (is_cut) collect_units(expressions[a], dealt);
    for (const AxisExpr& units : dealt) {
      cut.units.push_back(
          {fmt::format("axis {} of {}", a, cut.strategy), units, spec.uneven, rule.place});
      cut.units.back().is_of_strategy = true;
    }
  }
  return cut;
}

}  // namespace shardtool::mapping
