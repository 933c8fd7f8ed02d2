#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/ops/works.h"
#include "lib/base/error.h"
#include "lib/engine/ops/apply.h"
#include "lib/engine/ops/buckets.h"
#include "lib/engine/ops/patch_grid.h"
#include "lib/engine/ops/rope_frequencies.h"
#include "lib/engine/run/numbers.h"
#include "lib/engine/run/position_choice.h"
#include "lib/engine/run/stop.h"
#include "lib/model/flow/window.h"

namespace shardtool::engine {
namespace {

using index::AxisMap;
using kernels::RowView;

/// Cosines and sines of every position, row p of the pairs at p * pairs.
template <class N>
struct Angles {
  i64 pairs = 0;
  std::vector<N> cos, sin;
};

/// Of residues: any numbers, the same on both sides.
Angles<Field> random_angles(i64 pairs, i64 length) {
  constexpr std::uint64_t kSeed = 0x0a9135;
  Angles<Field> angles{pairs, {}, {}};
  for (i64 i = 0; i < pairs * length; ++i) {
    angles.cos.push_back(kernels::field_random(kSeed, 2 * static_cast<std::uint64_t>(i)));
    angles.sin.push_back(kernels::field_random(kSeed, 2 * static_cast<std::uint64_t>(i) + 1));
  }
  return angles;
}

template <class N>
void add_angle(double angle, double factor, Angles<N>& angles) {
  angles.cos.push_back(static_cast<N>(std::cos(angle) * factor));
  angles.sin.push_back(static_cast<N>(std::sin(angle) * factor));
}

/// Those of positions from `first` on.
template <class N>
Angles<N> real_angles(const RopeFrequencies& frequencies, i64 first, i64 length) {
  Angles<N> angles{std::ssize(frequencies.inverse), {}, {}};
  for (i64 p = first; p < first + length; ++p) {
    for (const double inverse : frequencies.inverse) {
      add_angle(static_cast<double>(p) * inverse, frequencies.attention_factor, angles);
    }
  }
  return angles;
}

/// Of patches in a grid: half of the pairs turn by the row, half by the column.
template <class N>
Angles<N> patch_angles(const model::RotatePatches& op, i64 turned, double theta,
                       const OpAt<N>& at) {
  const bool is_of_half = op.frequencies == model::RotatePatches::Frequencies::kOfHalf;
  const auto inverse = rope_frequencies(at.side.model->config, {}, is_of_half ? turned / 2 : turned,
                                        theta, at.inputs.length)
                           .inverse;
  const PatchGrid grid = grid_of(op.patches, *at.side.model, at.inputs.length);
  const double first = mapping::value_of(op.first, at.side.model->config);
  const i64 of_side = turned / 4;
  Angles<N> angles{2 * of_side, {}, {}};
  for (i64 p = 0; p < at.inputs.length; ++p) {
    const bool is_patch = !op.patches.has_class || p + 1 < at.inputs.length;
    const PatchGrid::Place place = grid.place(p);
    for (i64 pair = 0; pair < 2 * of_side; ++pair) {
      const bool is_second = pair >= of_side;
      const bool is_column = is_second != op.columns_first;
      const i64 i = pair % of_side;
      const i64 which = is_of_half ? i : 2 * i + (is_second ? 1 : 0);
      const auto steps = first + static_cast<double>(is_column ? place.column : place.row);
      add_angle(is_patch ? steps * inverse[static_cast<size_t>(which)] : 0, 1, angles);
    }
  }
  return angles;
}

/// How many of the first features of a head turn. Throws kConfig where these are more than it has.
i64 turned_of(const model::Rope& op, i64 head, const model::Model& model) {
  const double fraction = mapping::value_of(op.fraction, model.config);
  const i64 turned =
      op.first ? model.size(*op.first) : static_cast<i64>(static_cast<double>(head) * fraction);
  if (turned >= 0 && turned <= head) return turned / 2 * 2;
  throw Error(ErrorCode::kConfig,
              fmt::format("{} says that {} of every {} features of a head are rotated",
                          model.config.file(), turned, head));
}

template <class N>
Angles<N> angles_of(const model::Rope& op, i64 head, const OpAt<N>& at) {
  const i64 turned = turned_of(op, head, *at.side.model);
  if constexpr (is_field<N>) {
    return random_angles(turned / 2, at.inputs.length);
  } else {
    const double theta =
        mapping::value_of(mapping::of_layer(op.theta, at.layer), at.side.model->config);
    if (op.patches) return patch_angles<N>(*op.patches, turned, theta, at);
    const auto& config = at.side.model->config;
    const auto yarn_factor =
        op.yarn_factor ? std::optional(mapping::value_of(*op.yarn_factor, config)) : std::nullopt;
    const i64 before = op.of_first ? at.side.model->size(*op.of_first) - 1 : 0;
    return real_angles<N>(
        rope_frequencies(config, op.scaling, turned, theta, at.inputs.length, yarn_factor), -before,
        at.inputs.length);
  }
}

kernels::RotaryPairs pairs_of(model::Rope::Style style) {
  switch (style) {
    case model::Rope::Style::kInterleaved:
      return kernels::RotaryPairs::kInterleaved;
    case model::Rope::Style::kDeinterleavedHalf:
      return kernels::RotaryPairs::kDeinterleavedHalf;
    case model::Rope::Style::kHalf:
      break;
  }
  return kernels::RotaryPairs::kHalf;
}

/// One attention on one device: the heads that it has, and where each finds its keys.
template <class N>
class AttentionAt {
 public:
  AttentionAt(const model::Attention& op, const OpAt<N>& at)
      : at_(at),
        op_(op),
        key_dim_(size(op.key_dim)),
        value_dim_(size(op.value_dim)),
        heads_(units_of(at.in[0]->features, key_dim_, at.op.op->in[0])),
        shared_(size(op.heads) / size(op.kv_heads)) {
    if (!at.op.weights.empty() && !at.op.weights[0].empty()) {
      sinks_ = load_vector(at, at.op.weights[0].front(), heads_);
    }
    window_ = model::window_of(op, at.side.model->config, at.layer);
    const i64 most = at.inputs.most_window;
    if (window_ && most > 0) window_ = std::min(*window_, most);
    if (op.entries) every_ = most > 0 ? std::min(size(*op.entries), most) : size(*op.entries);
  }

  Part<N> run() {
    Part<N> y = empty_part<N>(index::scale(heads_, value_dim_), at_.inputs.rows());
    kernels::Workbench& bench = at_.bench;
    kernels::AttendHeads<N> all = work();
    all.y = {bench.in_out(y.data), at_.inputs.rows(), y.width()};
    const i64 at_once = heads_at_once();
    const i64 most = all.most_scores();
    const i64 scores = bench.is_parallel() ? at_.inputs.rows() * at_once * most : most;
    all.scores = bench.template room<N>(static_cast<size_t>(scores));
    all.scores_stride = bench.is_parallel() ? most : 0;
    // Heads that are padding have no piece, and stay 0.
    for (const index::Piece& piece : heads_.pieces()) {
      for (i64 h = piece.local; h < piece.local_end(); h += at_once) {
        bench.run(heads(all, h, std::min(at_once, piece.local_end() - h)));
      }
    }
    bench.finish();
    throw_if_stopped(at_.inputs.cancel);
    return y;
  }

 private:
  i64 size(const model::Dim& dim) const { return at_.side.model->size(dim); }

  double scale() const {
    double scale = mapping::value_of(op_.scale, at_.side.model->config);
    if (op_.scale_of) scale /= std::sqrt(static_cast<double>(size(*op_.scale_of)));
    if (op_.yarn_scale) scale *= yarn_score_factor(at_.side.model->config);
    return scale;
  }

  double slope(i64 head) const {
    const double slope = kernels::alibi_slope(head, size(op_.heads));
    return op_.alibi == model::Alibi::kBeforeScale ? slope * scale() : slope;
  }

  /// Of which the scores have room.
  i64 heads_at_once() const {
    constexpr i64 kMostScores = i64{1} << 21;
    return std::max<i64>(1, kMostScores / std::max<i64>(1, at_.inputs.rows() * at_.inputs.length));
  }

  /// Of every query head, 0 of padding; none without linear biases.
  std::vector<N> slopes() const {
    if (op_.alibi == model::Alibi::kNone) return {};
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

  /// What every head adds by the distance between a query and a key.
  void add_biases(const model::Buckets& buckets, kernels::AttendHeads<N>& work) {
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
    bucket_of_ = buckets_of(buckets, *at_.side.model, at_.inputs.length, !op_.causal);
    work.bucket_of = at_.bench.in(bucket_of_);
  }

  /// Keys and values of several positions each, of heads of their own.
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

  /// How much every position, or every entry, counts for every query.
  const N* gates(const model::PositionIndex& index) {
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

  /// All heads, without room for scores and results.
  kernels::AttendHeads<N> work() {
    key_of_ = places_of_shared(at_, heads_, shared_, 1, key_dim_);
    value_of_ = places_of_shared(at_, heads_, shared_, 2, value_dim_);
    kernels::AttendHeads<N> work;
    work.scale = number_of<N>(scale());
    work.softcap = number_of<N>(mapping::value_of(op_.softcap, at_.side.model->config));
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
    work.chunked = window_ && op_.window->kind == model::Window::Kind::kChunked;
    return work;
  }

  /// Of these heads alone.
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
  const model::Attention& op_;
  i64 key_dim_, value_dim_;
  AxisMap heads_;
  i64 shared_;
  std::vector<N> sinks_, slopes_, gates_;
  std::vector<i64> key_of_, value_of_, entry_key_of_, entry_value_of_, bias_of_, key_bias_of_,
      bucket_of_;
  std::optional<i64> window_;
  std::optional<i64> every_;  ///< positions of an entry
};

}  // namespace

template <class N>
std::vector<i64> places_of_shared(const OpAt<N>& at, const AxisMap& heads, i64 shared,
                                  size_t operand, i64 unit) {
  const std::string& name = at.op.op->in[operand];
  const AxisMap where = index::inverse(units_of(at.in[operand]->features, unit, name));
  // Heads of padding read the first head that is there, whichever that is.
  if (heads.local_size() > 0 && at.in[operand]->width() == 0) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("device {} has heads but nothing of '{}'", at.rank, name));
  }
  std::vector<i64> places(static_cast<size_t>(heads.local_size()));
  for (const index::Piece& piece : heads.pieces()) {
    for (i64 i = 0; i < piece.size; ++i) {
      const i64 head = (piece.global + i) / shared;
      const auto found = head < where.local_size() ? where(head) : std::nullopt;
      if (!found) {
        throw Error(ErrorCode::kUnsupported,
                    fmt::format("device {} has query heads but not their head {} of '{}'", at.rank,
                                head, name));
      }
      places[static_cast<size_t>(piece.local + i)] = *found;
    }
  }
  return places;
}

template <class N>
Part<N> apply(const model::Rope& op, const OpAt<N>& at) {
  const i64 head = at.side.model->size(op.head);
  Angles<N> angles = angles_of(op, head, at);
  for (N& sine : angles.sin) sine = op.back ? -sine : sine;
  const Part<N>& x = *at.in[0];
  Part<N> y = x;
  const i64 rows = at.inputs.rows();
  at.bench.run(kernels::RotateHeads<N>{pairs_of(op.style),
                                       {at.bench.in(x.data), rows, x.width()},
                                       x.width() / head,
                                       head,
                                       op.at_end ? head - 2 * angles.pairs : 0,
                                       at.inputs.length,
                                       at.bench.in(angles.cos),
                                       at.bench.in(angles.sin),
                                       angles.pairs,
                                       {at.bench.in_out(y.data), rows, y.width()}});
  at.bench.finish();
  return y;
}

template <class N>
Part<N> apply(const model::Attention& op, const OpAt<N>& at) {
  return AttentionAt<N>(op, at).run();
}

#define SHARDTOOL_INSTANTIATE(N)                                                                \
  template std::vector<i64> places_of_shared(const OpAt<N>&, const AxisMap&, i64, size_t, i64); \
  template Part<N> apply(const model::Rope&, const OpAt<N>&);                                   \
  template Part<N> apply(const model::Attention&, const OpAt<N>&);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
