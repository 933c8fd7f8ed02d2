#include "lib/ops/linear/linear.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/ops/decoder.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;
using layout::Layout;
using plan::Placement;

/// The field "columns": one axis, or a list of axes that together are the columns.
JsonValue::Field columns_field(Linear& into, std::vector<Dim>& axes) {
  return {"columns",
          [&](const JsonValue& v) {
            if (!v.is_array()) {
              axes = {into.columns = decode_dim(v)};
              return;
            }
            axes = decode_dims(v);
            mapping::FoldedAxes all;
            for (const Dim& axis : axes) {
              const bool is_product = axis.sections.size() == 1;
              if (!is_product) v.refuse("axes without '+'");
              const auto& factors = axis.sections.front().factors;
              all.factors.insert(all.factors.end(), factors.begin(), factors.end());
            }
            into.columns.sections = {std::move(all)};
          },
          true};
}

std::vector<bool> cut_of_columns(const Linear& op, const Walk& walk, const BoundWeight& weight) {
  const Layout& layout = walk.layout_of(weight);
  if (layout.axes().size() == 2) {
    return walk.cut_by(layout, op.kernel == layout::Kernel::kOutIn ? 1 : 0);
  }
  for (size_t d = 1; d < layout.axes().size(); ++d) {
    const auto cut = walk.cut_by(layout, d);
    if (std::find(cut.begin(), cut.end(), true) == cut.end()) continue;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("no rule takes a matrix whose columns are several axes, axis {} of "
                            "which is cut",
                            d));
  }
  return std::vector<bool>(walk.axes());
}

/// Returns the features that every device reads for its rows of a matrix in groups: whole groups.
std::vector<AxisMap> features_of_groups(const Linear& op, const Walk& walk, const Layout& weight) {
  const i64 rows = walk.size(op.rows) / walk.size(*op.groups);
  std::vector<AxisMap> features = walk.held(weight, 0);
  for (AxisMap& map : features) {
    const auto groups = index::coarsen(map, rows);
    if (!groups) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("no rule takes a cut inside a group of {} rows", rows))
          .note("found", to_string(map));
    }
    map = index::scale(*groups, walk.size(op.columns));
  }
  return features;
}

}  // namespace

void decode(Linear& op, OpDecoder& in) {
  std::vector<Dim> axes;
  OpDecoder::Fields fields;
  std::optional<std::vector<Dim>> bias_shape;
  fields.push_back(in.weight("weight", [&] {
    std::vector<Dim> shape = axes;
    shape.insert(op.kernel == layout::Kernel::kOutIn ? shape.begin() : shape.end(), op.rows);
    return shape;
  }));
  fields.push_back(in.weight(
      "bias", [&] { return bias_shape.value_or(std::vector{op.rows}); }, false));
  fields.push_back({"bias_shape", [&](const JsonValue& v) { bias_shape = decode_dims(v); }});
  fields.push_back(in.dim("rows", op.rows));
  fields.push_back(columns_field(op, axes));
  fields.push_back(in.kernel(op.kernel));
  fields.push_back(in.optional_dim("groups", op.groups));
  in.finish(std::move(fields));
  if (op.groups && op.kernel != layout::Kernel::kOutIn) {
    in.value().refuse("an op whose kernel is out_in where it has groups");
  }
  if (axes.size() > 1 && op.kernel != layout::Kernel::kOutIn) {
    in.value().refuse("an op whose kernel is out_in where the columns are several axes");
  }
}

void decode_logits(Linear& op, OpDecoder& in) {
  in.op().is_head = true;
  decode(op, in);
}

void check(const Linear& op, const Widths& widths) {
  widths.exactly(0, (op.groups ? widths.positive(*op.groups) : 1) * widths.size(op.columns));
}

/// The planner's rules of matmul, x [tokens, columns] by W^T [columns, rows]. A bias is cut with
/// the rows, or else added once.
std::vector<plan::OpRow> rules(const Linear& op, const RuleSite& site) {
  const int out_axis = op.kernel == layout::Kernel::kOutIn ? 0 : 1;
  const auto& refs = site.bound().op->weights;
  std::vector<plan::OpRow> rows;
  for (const plan::OpRow& rule : plan::matmul_rows({1, 1}, {1, 1})) {
    Placement x = rule.operands[0], weight = rule.operands[1], bias = kWhole;
    const bool by_inputs = weight == Placement::sharded(0);
    if (weight == kSum || (by_inputs && (op.groups || refs.front().shape.size() > 2))) continue;
    if (by_inputs) weight = Placement::sharded(1 - out_axis);
    if (rule.result == kCut) {
      weight = Placement::sharded(out_axis);
      if (refs.size() > 1) bias = Placement::sharded(static_cast<int>(features_axis(refs[1])));
      if (op.groups) x = kCut;
    }
    rows.push_back(site.row({x}, {weight, bias}, rule.result));
    rows.back().operands.resize(1 + site.weights());
  }
  return rows;
}

Value place(const Linear& op, Walk& walk, const BoundOp& bound) {
  const auto rules = walk.rules(bound);
  const Layout& weight = walk.layout_of(bound.weights.front());
  const size_t out_axis = op.kernel == layout::Kernel::kOutIn ? 0 : 1;
  const auto by_outputs = walk.cut_by(weight, out_axis);
  const auto by_inputs = cut_of_columns(op, walk, bound.weights.front());
  const bool is_summed = std::find(by_inputs.begin(), by_inputs.end(), true) != by_inputs.end();
  if (is_summed) walk.require_dealt_once(bound.weights.front(), 1 - out_axis, by_inputs);
  Value& x = walk.in(bound, 0);
  walk.reduce_all(x);
  Value y = walk.whole(walk.size(op.rows));
  // A cut input must be cut like the weight's columns; otherwise it is gathered.
  std::vector<bool> unmatched(walk.axes());
  for (size_t a = 0; a < walk.axes(); ++a) {
    const Placement on = by_inputs[a]    ? Placement::sharded(static_cast<int>(1 - out_axis))
                         : by_outputs[a] ? Placement::sharded(static_cast<int>(out_axis))
                                         : kWhole;
    const plan::OpRow& rule = rule_for(rules, 1, on);
    y.on[a] = rule.result;
    unmatched[a] = rule.operands[0] != kCut;
  }
  walk.gather(x, unmatched);
  const std::vector<AxisMap> read =
      op.groups ? features_of_groups(op, walk, weight) : walk.held(weight, 1 - out_axis);
  if (is_cut(x) && x.features != read) {
    walk.step().is_realigned = true;
    walk.make_whole(x);
  }
  y.features = walk.held(weight, out_axis);
  if (bound.op->is_head) walk.make_whole(y);
  return y;
}

}  // namespace shardtool::ops
