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

std::vector<OpRow> add_rows(const Shape& a, const Shape& b) {
  std::vector<OpRow> rows = mul_rows(a, b);
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

std::vector<OpRow> untouched_rows(const Shape& x, const std::vector<int>& touched, bool is_linear) {
  std::vector<OpRow> rows = is_linear ? linear_rows(x) : nonlinear_rows(x);
  std::erase_if(rows, [&touched](const OpRow& row) {
    return row.result.is(Placement::Kind::kSharded) &&
           std::find(touched.begin(), touched.end(), row.result.axis) != touched.end();
  });
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
