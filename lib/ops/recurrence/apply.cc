#include <algorithm>
#include <cmath>

#include "kernels/ops/pool.h"
#include "kernels/ops/works.h"
#include "lib/base/interruption.h"
#include "lib/ops/body.h"
#include "lib/ops/recurrence/recurrence.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;
using kernels::RowView;

/// Returns the state before a sequence. In the field it is `unit` random numbers per feature, so
/// that one position tests every tap of a convolution and every element of a state. Empty for
/// floats.
template <class N>
std::vector<N> past_of(const AxisMap& features, i64 unit) {
  if constexpr (is_field<N>) {
    constexpr std::uint64_t kSeed = 0x9a57;
    std::vector<N> past(static_cast<size_t>(features.local_size() * unit));
    for (const index::Piece& piece : features.pieces()) {
      for (i64 i = 0; i < piece.size * unit; ++i) {
        past[static_cast<size_t>(piece.local * unit + i)] =
            kernels::field_random(kSeed, static_cast<std::uint64_t>(piece.global * unit + i));
      }
    }
    return past;
  } else {
    return {};
  }
}

template <class N>
RowView<const N> view(const OpAt<N>& at, const Part<N>& part) {
  return {at.bench.in(part.data), at.inputs.rows(), part.width()};
}

template <class N>
const N* or_null(const OpAt<N>& at, const std::vector<N>& numbers) {
  return numbers.empty() ? nullptr : at.bench.in(numbers);
}

/// Applies function(x, weight) to every feature; the op's only weight has one axis.
template <class N, class Function>
Part<N> each_with_weight(const OpAt<N>& at, const Function& function) {
  const AxisMap features = features_with_weights(at);
  const i64 rows = at.inputs.rows();
  Part<N> y = aligned(*at.in[0], features, rows, at.op.op->in[0]);
  const std::vector<N> weight = load_vector(at, at.op.weights[0].front(), features);
  for (i64 t = 0; t < rows; ++t) {
    for (i64 f = 0; f < y.width(); ++f) {
      y.row(t)[f] = function(y.row(t)[f], weight[static_cast<size_t>(f)]);
    }
  }
  return y;
}

/// Weighted mean of positions on one device, with the taps of each series of each feature.
template <class N>
class CompressedKvAt {
 public:
  CompressedKvAt(const CompressedKv& op, const OpAt<N>& at)
      : at_(at),
        size_(at.model.size(op.size)),
        width_(at.model.size(op.width)),
        taps_(at.model.size(op.taps)),
        x_(whole(0)),
        scores_(whole(1)),
        bias_(load_small<N>(at.weights, at.inputs.map, at.op.weights[0].front(), at.rank).data) {}

  Part<N> run() const {
    Part<N> y = empty_part<N>(AxisMap::identity(size_), at_.inputs.rows());
    for (i64 row = 0; row < at_.inputs.rows(); ++row) {
      check_interrupted();
      for (i64 f = 0; f < size_; ++f) y.row(row)[f] = mean(row, f);
    }
    return y;
  }

 private:
  Part<N> whole(size_t operand) const {
    return aligned(*at_.in[operand], AxisMap::identity(width_), at_.inputs.rows(),
                   at_.op.op->in[operand]);
  }

  /// In the field, positions before a sequence have random numbers and series end one position
  /// apart, so that a few positions test all of them. For floats there are none.
  N mean(i64 row, i64 feature) const {
    std::vector<N> values, scores;
    const i64 position = row % at_.inputs.length;
    const i64 series = width_ / size_;
    const i64 apart = is_field<N> ? 1 : taps_;
    for (i64 s = 0; s < series; ++s) {
      const i64 f = s * size_ + feature;
      for (i64 tap = 0; tap < taps_; ++tap) {
        const i64 back = (series - 1 - s) * apart + taps_ - 1 - tap;
        const N bias = bias_[static_cast<size_t>(tap * width_ + f)];
        if (back <= position) {
          values.push_back(x_.row(row - back)[f]);
          scores.push_back(scores_.row(row - back)[f] + bias);
        } else if constexpr (is_field<N>) {
          values.push_back(before(0, back - position, f));
          scores.push_back(before(1, back - position, f) + bias);
        }
      }
    }
    return kernels::pooled(values.data(), scores.data(), std::ssize(values));
  }
  N before(std::uint64_t operand, i64 steps, i64 feature) const {
    constexpr std::uint64_t kSeed = 0x9001;
    return kernels::field_random(kernels::hashed(kSeed, operand),
                                 static_cast<std::uint64_t>(steps * width_ + feature));
  }

  const OpAt<N>& at_;
  i64 size_, width_, taps_;
  Part<N> x_, scores_;
  std::vector<N> bias_;
};

/// One recurrence on one device: its heads, and the index of each head's operands.
template <class N>
class RecurrenceAt {
 public:
  RecurrenceAt(const Recurrence& op, const OpAt<N>& at)
      : at_(at),
        op_(op),
        key_dim_(size(op.key_dim)),
        value_dim_(size(op.value_dim)),
        decay_dim_(op.decay_dim ? size(*op.decay_dim) : 1),
        heads_(heads_of()) {
    const i64 shared = size(op.heads) / size(op.key_heads);
    query_of_ = places_of_shared(at, heads_, shared, 0, key_dim_);
    key_of_ = places_of_shared(at, heads_, shared, 1, key_dim_);
    values_ = of_heads(2, value_dim_);
    decays_ = of_heads(3, decay_dim_);
    gates_ = gates();
    if (has_weight(at.op, 0)) skips_ = load_vector(at, at.op.weights[0].front(), heads_);
    first_ = past_of<N>(values_.features, key_dim_);
  }

  Part<N> run() {
    const i64 rows = at_.inputs.rows();
    Part<N> y = empty_part<N>(values_.features, rows);
    kernels::Workbench& bench = at_.bench;
    kernels::RecurHeads<N> work = operands();
    work.y = {bench.zeros(y.data), rows, y.width()};
    const i64 items = bench.is_parallel() ? work.count() : 1;
    work.states = bench.template room<N>(static_cast<size_t>(items * key_dim_));
    work.states_stride = bench.is_parallel() ? key_dim_ : 0;
    bench.run(work);
    bench.finish();
    check_interrupted();
    return y;
  }

 private:
  i64 size(const Dim& dim) const { return at_.model.size(dim); }

  AxisMap heads_of() const {
    const AxisMap heads = units_of(at_.in[2]->features, value_dim_, at_.op.op->in[2]);
    if (!has_weight(at_.op, 0)) return heads;
    const AxisMap held = features_of(at_, 0);
    return is_narrower(heads, held) ? held : heads;
  }
  Part<N> of_heads(size_t operand, i64 unit) const {
    return aligned(*at_.in[operand], index::scale(heads_, unit), at_.inputs.rows(),
                   at_.op.op->in[operand]);
  }

  Part<N> gates() const {
    constexpr size_t kGates = 4;
    if (at_.in.size() > kGates) return of_heads(kGates, 1);
    Part<N> ones = empty_part<N>(heads_, at_.inputs.rows());
    std::fill(ones.data.begin(), ones.data.end(), number_of<N>(1));
    return ones;
  }

  kernels::RecurHeads<N> operands() {
    kernels::RecurHeads<N> work;
    work.rule = op_.rule;
    const double of = op_.scale_of ? static_cast<double>(size(*op_.scale_of)) : 1;
    work.scale = number_of<N>(1 / std::sqrt(of));
    work.queries = view(at_, *at_.in[0]);
    work.keys = view(at_, *at_.in[1]);
    work.values = view(at_, values_);
    work.decays = view(at_, decays_);
    work.gates = view(at_, gates_);
    work.heads = heads_.local_size();
    work.key_size = key_dim_;
    work.value_size = value_dim_;
    work.decay_size = decay_dim_;
    work.query_of = at_.bench.in(query_of_);
    work.key_of = at_.bench.in(key_of_);
    work.skips = or_null(at_, skips_);
    work.first = or_null(at_, first_);
    work.length = at_.inputs.length;
    return work;
  }

  const OpAt<N>& at_;
  const Recurrence& op_;
  i64 key_dim_, value_dim_, decay_dim_;
  AxisMap heads_;
  std::vector<i64> query_of_, key_of_;
  Part<N> values_, decays_, gates_;
  std::vector<N> skips_, first_;
};

}  // namespace

template <class N>
Part<N> apply(const Convolve& op, const OpAt<N>& at) {
  const i64 taps = at.model.size(op.taps);
  const AxisMap features = features_with_weights(at);
  const Part<N> x = aligned(*at.in[0], features, at.inputs.rows(), at.op.op->in[0]);
  const std::vector<N> weight = load_rows(at, 0, features, taps);
  const std::vector<N> bias =
      has_weight(at.op, 1) ? load_vector(at, at.op.weights[1].front(), features) : std::vector<N>{};
  const std::vector<N> past = past_of<N>(features, taps - 1);
  Part<N> y = empty_part<N>(features, at.inputs.rows());
  at.bench.run(kernels::ConvolveRows<N>{view(at, x),
                                        x.width(),
                                        at.bench.in(weight),
                                        taps,
                                        or_null(at, bias),
                                        or_null(at, past),
                                        at.inputs.length,
                                        {at.bench.out(y.data), at.inputs.rows(), y.width()}});
  at.bench.finish();
  return y;
}

template <class N>
Part<N> apply(const CompressedKv& op, const OpAt<N>& at) {
  return CompressedKvAt<N>(op, at).run();
}

template <class N>
Part<N> apply(const StepSize& op, const OpAt<N>& at) {
  const double least = mapping::value_of(op.least, at.model.config);
  const double most = mapping::value_of(op.most, at.model.config);
  return each_with_weight(
      at, [least, most](N x, N bias) { return kernels::step_of(x + bias, least, most); });
}

template <class N>
Part<N> apply(const Decay& op, const OpAt<N>& at) {
  const ModelSizes& model = at.model;
  const i64 states = op.states ? model.size(*op.states) : 1;
  const i64 of_head = op.steps ? model.size(*op.steps) : 1;
  const AxisMap features = features_with_weights(at, of_head);
  const i64 rows = at.inputs.rows();
  const Part<N> steps = aligned(*at.in[0], features, rows, at.op.op->in[0]);
  const AxisMap heads = units_of(features, of_head, at.op.op->in[0]);
  const std::vector<N> rates = load_rows(at, 0, heads, states);
  const auto least =
      op.least ? std::optional(mapping::value_of(*op.least, model.config)) : std::nullopt;
  Part<N> y = empty_part<N>(index::scale(features, states), rows);
  for (i64 t = 0; t < rows; ++t) {
    for (i64 i = 0; i < y.width(); ++i) {
      const N rate = rates[static_cast<size_t>(i / of_head)];
      const N step = steps.row(t)[i / states];
      y.row(t)[i] =
          least ? kernels::bounded_decay_of(rate, step, *least) : kernels::decay_of(rate, step);
    }
  }
  return y;
}

template <class N>
Part<N> apply(const Fade&, const OpAt<N>& at) {
  const AxisMap heads = features_of(at, 0);
  std::vector<N> kept = load_rows(at, 0, heads, 1);
  for (N& number : kept) number = kernels::faded(number);
  Part<N> y = empty_part<N>(heads, at.inputs.rows());
  for (i64 t = 0; t < at.inputs.rows(); ++t) std::copy(kept.begin(), kept.end(), y.row(t));
  return y;
}

template <class N>
Part<N> apply(const Recurrence& op, const OpAt<N>& at) {
  return RecurrenceAt<N>(op, at).run();
}

SHARDTOOL_BODY(Convolve)
SHARDTOOL_BODY(CompressedKv)
SHARDTOOL_BODY(StepSize)
SHARDTOOL_BODY(Decay)
SHARDTOOL_BODY(Fade)
SHARDTOOL_BODY(Recurrence)

}  // namespace shardtool::ops
