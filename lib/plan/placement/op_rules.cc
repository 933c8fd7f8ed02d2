#include "lib/plan/placement/op_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/error.h"

namespace shardtool::plan {
namespace {

const Placement kR = Placement::replicated();
const Placement kP = Placement::partial();
Placement cut(int axis) {
  return Placement::sharded(axis);
}

std::vector<OpRow> whole_row(size_t operands) {
  return {{std::vector<Placement>(operands, kR), kR}};
}

int rank_of(const Shape& shape) {
  return static_cast<int>(shape.size());
}

Error unfit(const Shape& a, const Shape& b, std::string_view op) {
  return Error(
      ErrorCode::kShapeMismatch,
      fmt::format("{} of {} and {}", op, shardtool::to_string(a), shardtool::to_string(b)));
}

/// Placement that cuts result axis `axis` of `rank` in an operand aligned from the right: R if the
/// operand lacks it or broadcasts over it.
Placement aligned(const Shape& operand, int axis, int rank) {
  const int own = axis - (rank - rank_of(operand));
  return own < 0 || operand[static_cast<size_t>(own)] == 1 ? kR : cut(own);
}

/// Extent of an operand along result axis `axis`, 1 if it lacks the axis.
i64 extent(const Shape& operand, int axis, int rank) {
  const int own = axis - (rank - rank_of(operand));
  return own < 0 ? 1 : operand[static_cast<size_t>(own)];
}

std::vector<OpRow> elementwise_rows(const Shape& a, const Shape& b) {
  const int rank = std::max(rank_of(a), rank_of(b));
  std::vector<OpRow> rows = whole_row(2);
  for (int axis = 0; axis < rank; ++axis) {
    const i64 left = extent(a, axis, rank);
    const i64 right = extent(b, axis, rank);
    if (left != right && left != 1 && right != 1) throw unfit(a, b, "an elementwise op");
    rows.push_back({{aligned(a, axis, rank), aligned(b, axis, rank)}, cut(axis)});
  }
  return rows;
}

}  // namespace

std::string to_string(const OpRow& row) {
  std::vector<std::string> operands;
  for (const Placement& operand : row.operands) operands.push_back(to_string(operand));
  return fmt::format("({}) -> {}", fmt::join(operands, ", "), to_string(row.result));
}

std::vector<OpRow> matmul_rows(const Shape& lhs, const Shape& rhs) {
  const int left = rank_of(lhs);
  const int right = rank_of(rhs);
  if (left < 2 || right < 2 || lhs.back() != rhs[rhs.size() - 2]) throw unfit(lhs, rhs, "matmul");
  const int rank = std::max(left, right);
  std::vector<OpRow> rows = whole_row(2);
  for (int axis = 0; axis < rank - 2; ++axis) {
    const Placement l = aligned(lhs, axis, rank);
    const Placement r = aligned(rhs, axis, rank);
    if (l != kR || r != kR) rows.push_back({{l, r}, cut(axis)});
  }
  rows.push_back({{cut(left - 2), kR}, cut(rank - 2)});
  rows.push_back({{kR, cut(right - 1)}, cut(rank - 1)});
  rows.push_back({{cut(left - 1), cut(right - 2)}, kP});
  rows.push_back({{kP, kR}, kP});
  rows.push_back({{kR, kP}, kP});
  return rows;
}

std::vector<OpRow> nonlinear_rows(const Shape& x) {
  std::vector<OpRow> rows = whole_row(1);
  for (int axis = 0; axis < rank_of(x); ++axis) rows.push_back({{cut(axis)}, cut(axis)});
  return rows;
}

std::vector<OpRow> linear_rows(const Shape& x) {
  std::vector<OpRow> rows = nonlinear_rows(x);
  rows.push_back({{kP}, kP});
  return rows;
}

std::vector<OpRow> mul_rows(const Shape& a, const Shape& b) {
  return elementwise_rows(a, b);
}

std::vector<OpRow> add_rows(const Shape& a, const Shape& b) {
  std::vector<OpRow> rows = elementwise_rows(a, b);
  rows.push_back({{kP, kP}, kP});
  return rows;
}

std::vector<OpRow> norm_rows(const Shape& x, int normalised_axes, int parameters) {
  const size_t operands = 1 + static_cast<size_t>(parameters);
  std::vector<OpRow> rows = whole_row(operands);
  for (int axis = 0; axis < rank_of(x) - normalised_axes; ++axis) {
    OpRow row{std::vector<Placement>(operands, kR), cut(axis)};
    row.operands.front() = cut(axis);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<OpRow> softmax_rows(const Shape& x, int axis) {
  return untouched_rows(x, {axis}, false);
}

std::vector<OpRow> sum_rows(const Shape& x, int axis) {
  std::vector<OpRow> rows = softmax_rows(x, axis);
  rows.push_back({{cut(axis)}, kP});
  rows.push_back({{kP}, kP});
  return rows;
}

std::vector<OpRow> mean_rows(const Shape& x, int axis) {
  const Placement average = Placement::partial(ReduceOp::kAvg);
  std::vector<OpRow> rows = softmax_rows(x, axis);
  rows.push_back({{cut(axis)}, average});
  rows.push_back({{average}, average});
  return rows;
}

std::vector<OpRow> permute_rows(const std::vector<int>& order) {
  std::vector<OpRow> rows = whole_row(1);
  for (size_t i = 0; i < order.size(); ++i) {
    rows.push_back({{cut(order[i])}, cut(static_cast<int>(i))});
  }
  rows.push_back({{kP}, kP});
  return rows;
}

std::vector<OpRow> reshape_rows(const Shape& from, const Shape& to) {
  if (element_count(from) != element_count(to)) throw unfit(from, to, "a reshape");
  std::vector<OpRow> rows = whole_row(1);
  i64 before = 1;
  for (int axis = 0; axis < rank_of(from); ++axis) {
    const i64 size = from[static_cast<size_t>(axis)];
    i64 target_before = 1;
    for (int target = 0; target < rank_of(to); ++target) {
      // Parts of both are ranges of whole trailing axes if the leading extents have equal products.
      const i64 target_size = to[static_cast<size_t>(target)];
      if (target_before == before && size > 1 && target_size > 1) {
        rows.push_back({{cut(axis)}, cut(target)});
      }
      target_before *= target_size;
    }
    before *= size;
  }
  rows.push_back({{kP}, kP});
  return rows;
}

std::vector<OpRow> whole_rows(int operands) {
  return whole_row(static_cast<size_t>(operands));
}

std::vector<OpRow> untouched_rows(const Shape& x, const std::vector<int>& touched, bool is_linear) {
  std::vector<OpRow> rows = is_linear ? linear_rows(x) : nonlinear_rows(x);
  std::erase_if(rows, [&touched](const OpRow& row) {
    return row.result.is(Placement::Kind::kSharded) &&
           std::find(touched.begin(), touched.end(), row.result.axis) != touched.end();
  });
  return rows;
}

std::vector<OpRow> concat_rows(const Shape& shape, int operands, int axis) {
  std::vector<OpRow> rows = source_concat_rows(shape, operands);
  std::erase_if(rows, [axis](const OpRow& row) { return row.result == cut(axis); });
  return rows;
}

std::vector<OpRow> source_concat_rows(const Shape& shape, int operands) {
  const auto n = static_cast<size_t>(operands);
  std::vector<OpRow> rows = whole_row(n);
  for (int d = 0; d < rank_of(shape); ++d) {
    rows.push_back({std::vector<Placement>(n, cut(d)), cut(d)});
  }
  rows.push_back({std::vector<Placement>(n, kP), kP});
  return rows;
}

std::vector<OpRow> stack_rows(const Shape& shape, int operands, int axis) {
  std::vector<OpRow> rows = source_concat_rows(shape, operands);
  for (OpRow& row : rows) {
    const bool moves = row.result.is(Placement::Kind::kSharded) && row.result.axis >= axis;
    if (moves) row.result = cut(row.result.axis + 1);
  }
  return rows;
}

std::vector<OpRow> split_rows(const Shape& x, int axis) {
  return untouched_rows(x, {axis}, true);
}

std::vector<OpRow> source_split_rows(const Shape& x, int axis, const std::vector<i64>& sizes,
                                     i64 largest_mesh_axis) {
  const bool divides = std::all_of(sizes.begin(), sizes.end(), [largest_mesh_axis](i64 size) {
    return size % largest_mesh_axis == 0;
  });
  return divides ? linear_rows(x) : split_rows(x, axis);
}

std::vector<OpRow> scatter_rows(const Shape& x, int axis) {
  std::vector<OpRow> rows = source_concat_rows(x, 3);
  std::erase_if(rows,
                [axis](const OpRow& row) { return row.result == cut(axis) || row.result == kP; });
  return rows;
}

std::vector<OpRow> conv_rows(const Convolution& conv) {
  std::vector<OpRow> rows{{{kR, kR}, kR}, {{cut(0), kR}, cut(0)}, {{kR, cut(0)}, cut(1)}};
  if (conv.has_bias) {
    for (OpRow& row : rows) row.operands.push_back(row.operands[1]);
    return rows;
  }
  if (conv.groups == 1) rows.push_back({{cut(1), cut(1)}, kP});
  rows.push_back({{kP, kR}, kP});
  rows.push_back({{kR, kP}, kP});
  return rows;
}

std::vector<OpRow> gather_rows(const Shape& table, const Shape& ids) {
  const int id_axes = rank_of(ids);
  std::vector<OpRow> rows = whole_row(2);
  for (int axis = 1; axis < rank_of(table); ++axis) {
    rows.push_back({{cut(axis), kR}, cut(id_axes + axis - 1)});
  }
  for (int axis = 0; axis < id_axes; ++axis) rows.push_back({{kR, cut(axis)}, cut(axis)});
  rows.push_back({{kP, kR}, kP});
  return rows;
}

std::vector<OpRow> masked_gather_rows(const Shape& table, const Shape& ids) {
  std::vector<OpRow> rows = gather_rows(table, ids);
  rows.push_back({{cut(0), kR}, kP});
  return rows;
}

}  // namespace shardtool::plan
