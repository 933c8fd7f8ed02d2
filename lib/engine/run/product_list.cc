#include "lib/engine/run/product_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/base/error.h"
#include "lib/index/section.h"

namespace shardtool::engine {
namespace {

using Role = MatrixProduct::Role;

/// Folds all axes after the first into one, if they are not cut.
index::Region with_columns(const index::Region& region) {
  i64 columns = 1;
  for (size_t axis = 1; axis < region.size(); ++axis) {
    if (region[axis] != index::AxisMap::identity(region[axis].global_size())) return region;
    columns *= region[axis].global_size();
  }
  return {region.front(), index::AxisMap::identity(columns)};
}

/// Returns the matrix of a tensor's last two axes; `outer` is the index on the axis before, if
/// there are three.
MatrixProduct matrix(const Side& side, size_t tensor, const index::Region& region, i64 rank,
                     i64 outer) {
  const TensorSpec& spec = side.tensors[tensor];
  const bool has_axes = std::ssize(region) == (outer < 0 ? 2 : 3);
  if (!has_axes || !kernels::is_computable(spec.dtype)) {
    throw Error(ErrorCode::kUnsupported, "a tensor is not a matrix of whole-byte numbers")
        .tensor(spec.name)
        .note("found", fmt::format("{} {}", to_string(spec.dtype), to_string(spec.shape)));
  }
  MatrixProduct product;
  product.tensor = tensor;
  product.rank = rank;
  product.outer = outer;
  product.dtype = spec.dtype;
  product.rows = region[region.size() - 2];
  product.columns = region.back();
  return product;
}

/// Exchanges rows and columns if the tensor is read transposed.
MatrixProduct as_stored(const Side& side, MatrixProduct product) {
  if (!side.is_turned(product.tensor)) return product;
  if (product.above > 0) {
    throw Error(ErrorCode::kUnsupported, "experts below each other are packed along their inputs")
        .tensor(side.tensors[product.tensor].name);
  }
  std::swap(product.rows, product.columns);
  product.is_in_out = !product.is_in_out;
  return product;
}

MatrixProduct only(const Side& side, const ops::BoundOp& op, i64 rank, bool is_in_out) {
  const size_t tensor = op.weights.front().front();
  const index::Region region = side.region(tensor, rank);
  const bool is_only_of_stack = std::holds_alternative<ops::Embed>(op.op->kind) &&
                                ops::features_axis(op.op->weights.front()) == 1;
  MatrixProduct product =
      is_only_of_stack
          ? matrix(side, tensor, region, rank, 0)
          : matrix(side, tensor, region.size() > 2 ? with_columns(region) : region, rank, -1);
  product.is_in_out = is_in_out;
  return as_stored(side, std::move(product));
}

/// Sets the groups of a matrix whose rows are in groups, each with its own input features.
MatrixProduct in_groups(MatrixProduct product, i64 groups, const TensorSpec& spec) {
  const i64 rows = product.rows.global_size() / groups;
  const auto had = index::coarsen(product.rows, rows);
  if (!had || product.is_in_out) {
    throw Error(ErrorCode::kUnsupported, "a rank has no whole groups of rows")
        .tensor(spec.name)
        .note("found", to_string(product.rows));
  }
  product.group_rows = rows;
  product.group_inputs = index::scale(*had, product.columns.global_size());
  return product;
}

/// The matrices of experts of this form: gate, up, down; or gate_up, down.
std::vector<Role> roles_of(const ops::Experts::Form& form) {
  if (form.order == ops::Experts::Order::kSeparate) return {Role::kGate, Role::kUp, Role::kDown};
  return {Role::kGate, Role::kDown};
}

/// Returns the expert's rows of a matrix in which the experts follow each other, or nullopt if the
/// device has none.
std::optional<MatrixProduct> rows_of_expert(MatrixProduct all, i64 expert, i64 experts,
                                            const TensorSpec& spec) {
  const i64 size = all.rows.global_size() / experts;
  const index::AxisMap where = index::inverse(all.rows);
  std::optional<i64> first, last;
  for (const index::Piece& piece : all.rows.pieces()) {
    const i64 begin = std::max(piece.global, expert * size);
    const i64 end = std::min(piece.global_end(), (expert + 1) * size);
    if (begin >= end) continue;
    if (!first) first = where(begin);
    last = where(end - 1);
  }
  if (!first) return std::nullopt;
  all.rows = index::section_of(all.rows, expert * size, size);
  all.above = *first;
  if (*last - *first + 1 == all.rows.local_size()) return all;
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("rank {} has rows of other experts between those of expert {}", all.rank, expert))
      .tensor(spec.name);
}

/// Returns one matrix of an expert, or nullopt if the device lacks it.
std::optional<MatrixProduct> find_expert(const Side& side, const ops::Experts::Form& form,
                                         const ops::BoundWeight& weight, i64 expert, i64 experts,
                                         i64 rank) {
  const size_t tensor = form.per_expert ? weight[static_cast<size_t>(expert)] : weight.front();
  const auto region = side.layouts(tensor).region(rank);
  if (!region) return std::nullopt;
  if (form.per_expert) return matrix(side, tensor, *region, rank, -1);
  if (form.in_rows) {
    return rows_of_expert(matrix(side, tensor, *region, rank, -1), expert, experts,
                          side.tensors[tensor]);
  }
  for (const index::Piece& piece : region->front().pieces()) {
    if (expert < piece.global || expert >= piece.global_end()) continue;
    return matrix(side, tensor, *region, rank, piece.local + expert - piece.global);
  }
  return std::nullopt;
}

std::vector<MatrixProduct> experts(const Side& side, const ops::Experts& op,
                                   const ops::BoundOp& bound, i64 rank) {
  const ops::Experts::Form& form = *bound.form;
  const std::vector<Role> roles = roles_of(form);
  const i64 all = side.model->size(op.experts);
  std::vector<MatrixProduct> products;
  for (i64 expert = 0; expert < all; ++expert) {
    size_t had = 0;
    for (size_t i = 0; i < roles.size(); ++i) {
      auto found = find_expert(side, form, bound.weights[i], expert, all, rank);
      if (!found) continue;
      ++had;
      found->is_in_out = form.kernels[i] == layout::Kernel::kInOut;
      products.push_back(as_stored(side, *std::move(found)));
      products.back().role = roles[i];
      products.back().expert = expert;
    }
    if (had == 0 || had == roles.size()) continue;
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("rank {} has some matrices of expert {} and lacks others", rank, expert))
        .tensor(side.tensors[products.back().tensor].name);
  }
  return products;
}

index::Interval share(index::Interval all, i64 part, i64 parts) {
  return {all.begin + all.size() * part / parts, all.begin + all.size() * (part + 1) / parts};
}

}  // namespace

std::vector<GroupBlock> by_group(const MatrixProduct& product, const MatrixBlock& block) {
  if (product.group_rows == 0) return {{block, 0}};
  std::vector<GroupBlock> groups;
  for (i64 r = block.rows.begin; r < block.rows.end;) {
    const i64 group = r / product.group_rows;
    const i64 end = std::min(block.rows.end, (group + 1) * product.group_rows);
    MatrixBlock one = block;
    one.rows = {r, end};
    one.bytes += (r - block.rows.begin) * block.stride * bits(product.dtype) / 8;
    groups.push_back({one, group * product.columns.global_size()});
    r = end;
  }
  return groups;
}

MatrixBlock share_of_work(const MatrixProduct& product, index::Interval rows,
                          const std::byte* bytes, i64 part, i64 parts) {
  MatrixBlock block{rows, {0, product.columns.local_size()}, bytes, product.columns.local_size()};
  if (product.is_in_out) {
    block.columns = share(block.columns, part, parts);
    block.bytes += block.columns.begin * bits(product.dtype) / 8;
  } else {
    block.rows = share(rows, part, parts);
    block.bytes += (block.rows.begin - rows.begin) * product.row_bytes();
  }
  return block;
}

std::vector<MatrixProduct> products_of(const Side& side, const ops::BoundOp& bound, i64 rank) {
  const auto& kind = bound.op->kind;
  if (std::holds_alternative<ops::Embed>(kind)) return {only(side, bound, rank, true)};
  if (const auto* linear = std::get_if<ops::Linear>(&kind)) {
    MatrixProduct product = only(side, bound, rank, linear->kernel == layout::Kernel::kInOut);
    if (!linear->groups) return {std::move(product)};
    const TensorSpec& spec = side.tensors[product.tensor];
    return {in_groups(std::move(product), side.model->size(*linear->groups), spec)};
  }
  if (std::holds_alternative<ops::Router>(kind)) return {only(side, bound, rank, false)};
  if (const auto* op = std::get_if<ops::Experts>(&kind)) return experts(side, *op, bound, rank);
  return {};
}

}  // namespace shardtool::engine
