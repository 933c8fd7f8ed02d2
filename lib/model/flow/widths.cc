#include "lib/model/flow/widths.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"

namespace shardtool::model {
namespace {

/// Holds the inputs of one op against its sizes.
class Widths {
 public:
  Widths(const Model& model, const BoundOp& bound, std::span<const i64> widths)
      : model_(model), op_(*bound.op), widths_(widths) {
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] <= 0) throw misfit(i, "some");
    }
  }

  /// What reads values of any width.
  template <class Any>
  void check(const Any& /*op*/) const {}

  void check(const ConvolveFrames& op) const { exactly(0, size(op.frames) * size(op.columns)); }
  void check(const Linear& op) const {
    exactly(0, (op.groups ? positive(*op.groups) : 1) * size(op.columns));
  }
  void check(const ClassToken& op) const { exactly(0, size(op.size)); }
  void check(const Split& op) const {
    i64 all = 0;
    for (const Dim& section : op.sections) all += size(section);
    if (op.order == Split::Order::kConcat) return exactly(0, all);
    if (op.order == Split::Order::kPerHead) return exactly(0, size(op.heads) * all);
    in_units(0, all);
  }
  void check(const Join& op) const {
    if (op.order == Join::Order::kConcat) return;
    const i64 heads = positive(op.heads);
    for (size_t i = 0; i < op.sections.size(); ++i) {
      const i64 section = positive(op.sections[i]);
      if (i == 0 || widths_[i] != section) exactly(i, heads * section);
    }
  }
  void check(const Norm& op) const {
    op.per_head ? in_units(0, size(op.size)) : exactly(0, size(op.size));
  }
  void check(const Sums& op) const { in_units(0, size(op.size)); }
  void check(const Normalise& op) const {
    exactly(0, size(op.features));
    sums_of_the_first(op.size);
  }
  void check(const Resize& op) const { sums_of_the_first(op.size); }
  void check(const Cutoff& op) const { sums_of_the_first(op.size); }
  void check(const Mix& op) const {
    exactly(0, size(op.from) * size(op.size));
    exactly(1, size(op.from) * size(op.to));
  }
  void check(const Balance& op) const { exactly(0, size(op.size) * size(op.size)); }
  void check(const Rope& op) const { in_units(0, size(op.head)); }
  void check(const BucketScores& op) const { in_units(0, size(op.head_dim)); }
  void check(const Attention& op) const {
    const i64 heads = positive(op.heads);
    const i64 kv_heads = positive(op.kv_heads);
    if (heads % kv_heads != 0) {
      throw error(fmt::format("{} heads cannot share {} evenly", heads, kv_heads));
    }
    exactly(0, heads * positive(op.key_dim));
    exactly(1, kv_heads * size(op.key_dim));
    exactly(2, kv_heads * positive(op.value_dim));
    if (op.index) {
      exactly(3, positive(op.index->heads) * size(op.index->dim));
      exactly(4, positive(op.index->dim));
      exactly(5, size(op.index->heads));
    }
    if (op.entries) {
      const size_t first = op.index ? 6 : 3;
      exactly(first, kv_heads * size(op.key_dim));
      exactly(first + 1, kv_heads * size(op.value_dim));
    }
    for (size_t i = widths_.size() - biases_of(op); i < widths_.size(); ++i) {
      exactly(i, heads * positive(op.buckets->count));
    }
  }
  void check(const Convolve& op) const { exactly(0, size(op.features)); }
  void check(const Pool& op) const {
    exactly(0, positive(op.width));
    exactly(1, size(op.width));
  }
  void check(const StepSize& op) const { exactly(0, size(op.heads)); }
  void check(const Decay& op) const {
    exactly(0, size(op.heads) * (op.steps ? positive(*op.steps) : 1));
  }
  void check(const Recurrence& op) const {
    const i64 heads = positive(op.heads);
    const i64 keys = positive(op.key_heads) * positive(op.key_dim);
    if (heads % size(op.key_heads) != 0) {
      throw error(fmt::format("{} heads cannot share {} evenly", heads, size(op.key_heads)));
    }
    exactly(0, keys);
    exactly(1, keys);
    exactly(2, heads * positive(op.value_dim));
    exactly(3, heads * (op.decay_dim ? positive(*op.decay_dim) : 1));
    if (widths_.size() > 4) exactly(4, heads);
  }
  void check(const Multiply& /*op*/) const { meet(); }
  void check(const Add& /*op*/) const { meet(); }
  void check(const Router& op) const { exactly(0, size(op.columns)); }
  void check(const Experts& op) const {
    exactly(0, size(op.embed));
    exactly(1, size(op.experts));
  }

 private:
  i64 size(const Dim& dim) const { return model_.size(dim); }
  /// Of what there cannot be none of.
  i64 positive(const Dim& dim) const {
    if (size(dim) > 0) return size(dim);
    throw error(fmt::format("its size {} is {}", dim.text, size(dim)));
  }
  void exactly(size_t input, i64 wanted) const {
    if (widths_[input] != wanted) throw misfit(input, fmt::format("{} features", wanted));
  }
  void in_units(size_t input, i64 unit) const {
    if (unit <= 0 || widths_[input] % unit != 0) {
      throw misfit(input, fmt::format("features in units of {}", unit));
    }
  }
  /// A narrower value has a number for every so many of the widest one's.
  void meet() const {
    const i64 widest = *std::ranges::max_element(widths_);
    for (size_t i = 0; i < widths_.size(); ++i) {
      if (widest % widths_[i] != 0) {
        throw misfit(i, fmt::format("{} or a number that divides them", widest));
      }
    }
  }
  /// The others have one number for every `unit` features of the first.
  void sums_of_the_first(const Dim& unit) const {
    in_units(0, size(unit));
    for (size_t i = 1; i < widths_.size(); ++i) exactly(i, widths_[0] / size(unit));
  }

  Error misfit(size_t input, const std::string& wanted) const {
    return error(fmt::format("it reads '{}' of {} features, and takes {}", op_.in[input],
                             widths_[input], wanted));
  }
  Error error(const std::string& why) const {
    Error found(ErrorCode::kShapeMismatch, fmt::format("the graph of {} cannot make '{}': {}",
                                                       model_.graph->family, op_.out.front(), why));
    found.at(op_.place);
    return found;
  }

  const Model& model_;
  const Op& op_;
  std::span<const i64> widths_;
};

}  // namespace

void check_widths(const Model& model, const BoundOp& bound, std::span<const i64> widths) {
  const Widths found(model, bound, widths);
  std::visit([&found](const auto& op) { found.check(op); }, bound.op->kind);
}

}  // namespace shardtool::model
