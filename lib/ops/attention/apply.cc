#include <algorithm>
#include <cmath>

#include "kernels/ops/works.h"
#include "lib/base/interruption.h"
#include "lib/ops/attention/attention.h"
#include "lib/ops/attention/buckets.h"
#include "lib/ops/attention/position_choice.h"
#include "lib/ops/attention/window.h"
#include "lib/ops/body.h"
#include "lib/ops/rope/rope_frequencies.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;
using kernels::RowView;

/// One attention on one device: its heads, and the index of each head's keys.
template <class N>
class AttentionAt {
 public:
  AttentionAt(const Attention& op, const OpAt<N>& at)
      : at_(at),
        op_(op),
        key_dim_(size(op.key_dim)),
        value_dim_(size(op.value_dim)),
        heads_(units_of(at.in[0]->features, key_dim_, at.op.op->in[0])),
        shared_(size(op.heads) / size(op.kv_heads)) {
    if (!at.op.weights.empty() && !at.op.weights[0].empty()) {
      sinks_ = load_vector(at, at.op.weights[0].front(), heads_);
    }
    window_ = window_of(op, at.model.config, at.layer);
    const i64 most = at.inputs.most_window;
    if (window_ && most > 0) window_ = std::min(*window_, most);
    if (op.entries) every_ = most > 0 ? std::min(size(*op.entries), most) : size(*op.entries);
  }

  Part<N> run() {
    Part<N> y = empty_part<N>(index::scale(heads_, value_dim_), at_.inputs.rows());
    kernels::Workbench& bench = at_.bench;
    kernels::AttendHeads<N> all = work();
    all.y = {bench.zeros(y.data), at_.inputs.rows(), y.width()};
    const i64 at_once = heads_at_once();
    const i64 most = all.most_scores();
    const i64 scores = bench.is_parallel() ? at_.inputs.rows() * at_once * most : most;
    all.scores = bench.template room<N>(static_cast<size_t>(scores));
    all.scores_stride = bench.is_parallel() ? most : 0;
    // Heads that are padding have no piece, so their results stay 0.
    for (const index::Piece& piece : heads_.pieces()) {
      for (i64 h = piece.local; h < piece.local_end(); h += at_once) {
        bench.run(heads(all, h, std::min(at_once, piece.local_end() - h)));
      }
    }
    bench.finish();
    check_interrupted();
    return y;
  }

 private:
  i64 size(const Dim& dim) const { return at_.model.size(dim); }

  double scale() const {
    double scale = mapping::value_of(op_.scale, at_.model.config);
    if (op_.scale_of) scale /= std::sqrt(static_cast<double>(size(*op_.scale_of)));
    if (op_.yarn_scale) scale *= yarn_score_factor(at_.model.config);
    return scale;
  }

  double slope(i64 head) const {
    const double slope = kernels::alibi_slope(head, size(op_.heads));
    return op_.alibi == Alibi::kBeforeScale ? slope * scale() : slope;
  }

  /// Returns the number of heads whose scores fit into the scratch memory.
  i64 heads_at_once() const {
    constexpr i64 kMostScores = i64{1} << 21;
    return std::max<i64>(1, kMostScores / std::max<i64>(1, at_.inputs.rows() * at_.inputs.length));
  }

  /// Returns the slope of every query head, 0 for padding; empty without linear biases.
  std::vector<N> slopes() const {
    if (op_.alibi == Alibi::kNone) return {};
    std::vector<N> found(static_cast<size_t>(heads_.local_size()));
    for (const index::Piece& piece : heads_.pieces()) {
      for (i64 i = 0; i < piece.size; ++i) {
        found[static_cast<size_t>(piece.local + i)] = number_of<N>(slope(piece.global + i));
      }
    }
    return found;
  }

  RowView<const N> operand(size_t i) {
    return {at_.bench.in(at_.in[i]->data), at_.inputs.rows(), at_.in[i]->width()};
  }

  /// Adds a bias to every head's scores by the distance between query and key.
  void add_biases(const Buckets& buckets, kernels::AttendHeads<N>& work) {
    const size_t biases = at_.in.size() - biases_of(op_);
    work.buckets = size(buckets.count);
    work.biases = operand(biases);
    bias_of_ = places_of_shared(at_, heads_, 1, biases, work.buckets);
    work.bias_of = at_.bench.in(bias_of_);
    if (buckets.of_keys) {
      work.key_biases = operand(biases + 1);
      key_bias_of_ = places_of_shared(at_, heads_, 1, biases + 1, work.buckets);
      work.key_bias_of = at_.bench.in(key_bias_of_);
    }
    bucket_of_ = buckets_of(buckets, at_.model, at_.inputs.length, !op_.causal);
    work.bucket_of = at_.bench.in(bucket_of_);
  }

  /// Adds compressed keys and values. Each covers several positions and has its own heads.
  void add_entries(kernels::AttendHeads<N>& work) {
    const size_t first = op_.index ? 6 : 3;
    work.entry_every = *every_;
    work.entry_keys = operand(first);
    work.entry_values = operand(first + 1);
    entry_key_of_ = places_of_shared(at_, heads_, shared_, first, key_dim_);
    entry_value_of_ = places_of_shared(at_, heads_, shared_, first + 1, value_dim_);
    work.entry_key_of = at_.bench.in(entry_key_of_);
    work.entry_value_of = at_.bench.in(entry_value_of_);
  }

  /// Returns the index's weight of every position, or entry, for every query.
  const N* gates(const PositionIndex& index) {
    kernels::IndexRows<N> rows;
    rows.queries = operand(3);
    rows.keys = operand(4);
    rows.weights = operand(5);
    rows.heads = size(index.heads);
    rows.dim = size(index.dim);
    rows.top_k = size(index.top_k);
    rows.length = at_.inputs.length;
    rows.causal = op_.causal;
    rows.every = every_.value_or(1);
    const auto count = static_cast<size_t>(at_.inputs.rows() * rows.length);
    if constexpr (is_field<N>) {
      rows.gates = at_.bench.template room<N>(count);
      at_.bench.run(rows);
      return rows.gates;
    } else {
      const PositionChoice choice{at_.inputs.rows(), rows.length, rows.top_k, rows.causal,
                                  rows.every};
      rows.top_k = 0;
      gates_.resize(count);
      rows.gates = at_.bench.in_out(gates_);
      at_.bench.run(rows);
      at_.bench.finish();
      choose_positions(choice, at_.choosing, gates_);
      return at_.bench.in(gates_);
    }
  }

  /// Describes the work of all heads, without memory for scores and results.
  kernels::AttendHeads<N> work() {
    key_of_ = places_of_shared(at_, heads_, shared_, 1, key_dim_);
    value_of_ = places_of_shared(at_, heads_, shared_, 2, value_dim_);
    kernels::AttendHeads<N> work;
    work.scale = number_of<N>(scale());
    work.softcap = number_of<N>(mapping::value_of(op_.softcap, at_.model.config));
    slopes_ = slopes();
    work.sinks = sinks_.empty() ? nullptr : at_.bench.in(sinks_);
    work.slopes = slopes_.empty() ? nullptr : at_.bench.in(slopes_);
    if (op_.index) (every_ ? work.entry_gates : work.gates) = gates(*op_.index);
    if (every_) add_entries(work);
    if (op_.buckets) add_biases(*op_.buckets, work);
    work.queries = operand(0);
    work.keys = operand(1);
    work.values = operand(2);
    work.heads = heads_.local_size();
    work.key_size = key_dim_;
    work.value_size = value_dim_;
    work.key_of = at_.bench.in(key_of_);
    work.value_of = at_.bench.in(value_of_);
    work.length = at_.inputs.length;
    work.causal = op_.causal;
    work.window = window_.value_or(0);
    work.chunked = window_ && op_.window->kind == Window::Kind::kChunked;
    return work;
  }

  /// Restricts the work to these heads.
  kernels::AttendHeads<N> heads(kernels::AttendHeads<N> work, i64 first, i64 count) const {
    work.heads = count;
    work.queries.data += first * key_dim_;
    work.y.data += first * value_dim_;
    work.key_of += first;
    work.value_of += first;
    if (work.entry_key_of != nullptr) work.entry_key_of += first;
    if (work.entry_value_of != nullptr) work.entry_value_of += first;
    if (work.bias_of != nullptr) work.bias_of += first;
    if (work.key_bias_of != nullptr) work.key_bias_of += first;
    if (work.sinks != nullptr) work.sinks += first;
    if (work.slopes != nullptr) work.slopes += first;
    return work;
  }

  const OpAt<N>& at_;
  const Attention& op_;
  i64 key_dim_, value_dim_;
  AxisMap heads_;
  i64 shared_;
  std::vector<N> sinks_, slopes_, gates_;
  std::vector<i64> key_of_, value_of_, entry_key_of_, entry_value_of_, bias_of_, key_bias_of_,
      bucket_of_;
  std::optional<i64> window_;
  std::optional<i64> every_;  ///< positions per entry
};

}  // namespace

template <class N>
Part<N> apply(const Attention& op, const OpAt<N>& at) {
  return AttentionAt<N>(op, at).run();
}

SHARDTOOL_BODY(Attention)

}  // namespace shardtool::ops
