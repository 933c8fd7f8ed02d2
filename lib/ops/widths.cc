#include "lib/ops/widths.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/ops/op_table.h"

namespace shardtool::ops {

i64 Widths::positive(const Dim& dim) const {
  if (size(dim) > 0) return size(dim);
  throw error(fmt::format("its size {} is {}", dim.text, size(dim)));
}

void Widths::exactly(size_t input, i64 wanted) const {
  if (widths_[input] != wanted) throw misfit(input, fmt::format("{} features", wanted));
}

void Widths::in_units(size_t input, i64 unit) const {
  if (unit <= 0 || widths_[input] % unit != 0) {
    throw misfit(input, fmt::format("features in units of {}", unit));
  }
}

void Widths::meet() const {
  const i64 widest = *std::ranges::max_element(widths_);
  for (size_t i = 0; i < widths_.size(); ++i) {
    if (widest % widths_[i] != 0) {
      throw misfit(i, fmt::format("{} or a number that divides them", widest));
    }
  }
}

void Widths::sums_of_the_first(const Dim& unit) const {
  in_units(0, size(unit));
  for (size_t i = 1; i < widths_.size(); ++i) exactly(i, widths_[0] / size(unit));
}

Error Widths::misfit(size_t input, const std::string& wanted) const {
  return error(fmt::format("it reads '{}' of {} features, and takes {}", op_.in[input],
                           widths_[input], wanted));
}

Error Widths::error(const std::string& why) const {
  Error found(ErrorCode::kShapeMismatch, fmt::format("the graph of {} cannot make '{}': {}",
                                                     model_.family, op_.out.front(), why));
  found.at(op_.place);
  return found;
}

void check_widths(const ModelSizes& model, const BoundOp& bound, std::span<const i64> widths) {
  const Widths found(model, bound, widths);
  for (size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] <= 0) throw found.misfit(i, "some");
  }
  const auto check = bound.op->row->check;
  if (check != nullptr) check(*bound.op, found);
}

}  // namespace shardtool::ops
