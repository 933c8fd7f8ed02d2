#pragma once

#include "kernels/device/divide.h"
#include "kernels/device/team.h"
#include "kernels/ops/activated.h"
#include "kernels/ops/attend.h"
#include "kernels/ops/convolve.h"
#include "kernels/ops/norm.h"
#include "kernels/ops/position_index.h"
#include "kernels/ops/recur.h"
#include "kernels/ops/rotate.h"
#include "kernels/ops/router.h"
#include "kernels/product/product.h"

/// The ops over all rows of a value as works (device/launch.h). Each item calls the op's only body,
/// so sums have the CPU's order. T is Field, double or float.
namespace shardtool::kernels {

/// One item per head of a row; a row without heads is one. `weight` and `bias` have n numbers per
/// head, or n for all heads with a stride of 0, and may be null.
template <class T>
struct NormRows {
  NormSpec spec;
  RowView<const T> x;
  i64 n = 0;  ///< numbers per head
  const T* weight = nullptr;
  const T* bias = nullptr;
  RowView<T> y;
  i64 heads = 1;
  i64 weight_stride = 0;
  i64 bias_stride = 0;

  SHARDTOOL_BOTH i64 count() const { return x.count * heads; }
  SHARDTOOL_BOTH int lanes() const { return lanes_for(n); }
  template <class Team>
  SHARDTOOL_BOTH void operator()(i64 i, const Team& team) const {
    const auto [t, h] = divided(i, heads);
    norm_row(team, spec, x.row(t) + h * n, weight == nullptr ? nullptr : weight + h * weight_stride,
             bias == nullptr ? nullptr : bias + h * bias_stride, n, y.row(t) + h * n);
  }
};

/// One item per head of a row. Row t of x is at position t mod length, whose `pairs` angles begin
/// at cos + position * pairs.
template <class T>
struct RotateHeads {
  RotaryPairs style = RotaryPairs::kHalf;
  RowView<const T> x;
  i64 heads = 0;
  i64 head = 0;   ///< numbers per head
  i64 begin = 0;  ///< leading numbers of a head that are not rotated
  i64 length = 1;
  const T* cos = nullptr;
  const T* sin = nullptr;
  i64 pairs = 0;
  RowView<T> y;

  SHARDTOOL_BOTH i64 count() const { return x.count * heads; }
  SHARDTOOL_BOTH int lanes() const { return kWarpLanes; }
  template <class Team>
  SHARDTOOL_BOTH void operator()(i64 i, const Team& team) const {
    const auto [t, h] = divided(i, heads);
    const i64 at = h * head + begin;
    const i64 angles = divided(t, length).rest * pairs;
    rotate(team, style, x.row(t) + at, head - begin, cos + angles, sin + angles, pairs,
           y.row(t) + at);
  }
};

/// One item per query head of a row. Rows are consecutive sequences of `length`. If `causal`, a
/// query sees the positions up to its own, at most the last `window`; otherwise all positions
/// nearer than `window`. Head h uses the keys of head key_of[h] and the values of head value_of[h].
template <class T>
struct AttendHeads {
  T scale{};
  T softcap{};                ///< 0: no softcap
  const T* sinks = nullptr;   ///< one per query head; null: no sinks
  const T* slopes = nullptr;  ///< ALiBi slopes, one per query head; null: no slopes
  RowView<const T> queries, keys, values;
  i64 heads = 0;     ///< query heads
  i64 key_size = 0;  ///< numbers per query and per key
  i64 value_size = 0;
  const i64* key_of = nullptr;
  const i64* value_of = nullptr;
  i64 length = 1;
  bool causal = true;
  i64 window = 0;        ///< 0: unlimited
  bool chunked = false;  ///< windows are consecutive chunks instead of ending at each position
  /// Per row, weights of the `length` positions; null: 1.
  const T* gates = nullptr;
  /// Per row, `buckets` biases of each head of bias_of; empty: no buckets.
  RowView<const T> biases;
  i64 buckets = 0;
  const i64* bias_of = nullptr;
  RowView<const T> key_biases;       ///< per key row, biases of each head of
  const i64* key_bias_of = nullptr;  ///< key_bias_of; null: no key biases
  const i64* bucket_of = nullptr;    ///< for distances 1 - length to length - 1
  /// Positions per compressed entry; 0: no entries. An entry is stored in the row of its last
  /// position and visible to queries that see this position.
  i64 entry_every = 0;
  RowView<const T> entry_keys, entry_values;
  const i64* entry_key_of = nullptr;
  const i64* entry_value_of = nullptr;
  const T* entry_gates = nullptr;  ///< per row, weights of `length` entries; null: 1
  T* scores = nullptr;             ///< scratch, most_scores() numbers per item
  i64 scores_stride = 0;           ///< scratch stride between items; 0: items run one by one
  RowView<T> y;

  SHARDTOOL_BOTH i64 most_scores() const {
    return length + (entry_every == 0 ? 0 : length / entry_every);
  }

  static constexpr int kBlocksAtOnce = 2;  ///< multiply_rows needs many registers

  SHARDTOOL_BOTH i64 count() const { return queries.count * heads; }
  SHARDTOOL_BOTH int lanes() const { return kWarpLanes; }
  template <class Team>
  SHARDTOOL_BOTH void operator()(i64 i, const Team& team) const {
    const auto [row, h] = divided(i, heads);
    const i64 t = divided(row, length).rest;
    const i64 first = row - t;
    const i64 begin = window == 0 ? 0 : chunked ? t / window * window : first_of_window(t);
    ScoreSpec<T> spec{scale,
                      softcap,
                      sinks == nullptr ? nullptr : sinks + h,
                      slopes == nullptr ? T{} : slopes[h],
                      gates == nullptr ? nullptr : gates + row * length + begin,
                      buckets == 0 ? nullptr : biases.row(row) + bias_of[h] * buckets,
                      buckets == 0 ? nullptr : bucket_of + length - 1 - t};
    if (key_bias_of != nullptr) {
      spec.key_biases = key_biases.row(first) + key_bias_of[h] * buckets;
      spec.key_biases_stride = key_biases.stride;
    }
    EntryRows<T> entries;
    if (entry_every > 0) {
      spec.entries = (causal ? t + 1 : length) / entry_every;
      spec.entry_gates = entry_gates == nullptr ? nullptr : entry_gates + row * length;
      entries = {of_entries(entry_keys, first, entry_key_of[h], key_size),
                 of_entries(entry_values, first, entry_value_of[h], value_size)};
    }
    attend(team, spec, queries.row(row) + h * key_size,
           HeadRows<T>{keys.row(first) + key_of[h] * key_size, keys.stride, key_size},
           HeadRows<T>{values.row(first) + value_of[h] * value_size, values.stride, value_size},
           begin, causal ? t + 1 : end_of_window(t, begin), scores + i * scores_stride,
           y.row(row) + h * value_size, entries);
  }

 private:
  SHARDTOOL_BOTH i64 first_of_window(i64 t) const { return t + 1 > window ? t + 1 - window : 0; }
  SHARDTOOL_BOTH i64 end_of_window(i64 t, i64 begin) const {
    const i64 end = (chunked ? begin : t) + window;
    return window == 0 || end > length ? length : end;
  }
  SHARDTOOL_BOTH HeadRows<T> of_entries(const RowView<const T>& rows, i64 first, i64 head,
                                        i64 size) const {
    return {rows.data + (first + entry_every - 1) * rows.stride + head * size,
            entry_every * rows.stride, size};
  }
};

/// One item per row, which fills the gates of the positions that its query sees: its sequence, up
/// to its own position if `causal`. Other gates stay unchanged. Without top_k the gates are the
/// scores. With `every` > 1 the candidates are entries, stored in the row of their last position;
/// their gates are consecutive.
template <class T>
struct IndexRows {
  RowView<const T> queries, keys, weights;
  i64 heads = 0;
  i64 dim = 0;  ///< numbers per query head, and per key
  i64 top_k = 0;
  i64 length = 1;
  bool causal = true;
  T* gates = nullptr;
  i64 every = 1;

  static constexpr int kBlocksAtOnce = 2;  ///< multiply_rows needs many registers

  SHARDTOOL_BOTH i64 count() const { return queries.count; }
  SHARDTOOL_BOTH int lanes() const { return kWarpLanes; }
  template <class Team>
  SHARDTOOL_BOTH void operator()(i64 row, const Team& team) const {
    const i64 t = divided(row, length).rest;
    const i64 seen = (causal ? t + 1 : length) / every;
    T* const of_row = gates + row * length;
    const T* const first = keys.row(row - t + every - 1);
    const auto key_of = [=, step = every * keys.stride](i64 p) { return first + p * step; };
    index_scores(team, queries.row(row), weights.row(row), heads, dim, seen, key_of, of_row);
    team.sync();
    if (top_k > 0) gate_together(team, of_row, seen, top_k);
  }
};

/// One item per feature of a row. Rows are consecutive sequences of `length`. A feature has `taps`
/// weights and taps - 1 numbers from before the sequence. `bias` and `past` may be null.
template <class T>
struct ConvolveRows {
  RowView<const T> x;
  i64 n = 0;  ///< features per row
  const T* weight = nullptr;
  i64 taps = 1;
  const T* bias = nullptr;
  const T* past = nullptr;
  i64 length = 1;
  RowView<T> y;

  SHARDTOOL_BOTH i64 count() const { return x.count * n; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    const auto [row, f] = divided(i, n);
    const i64 t = divided(row, length).rest;
    const T sum = convolved(x.row(row - t) + f, x.stride, t, weight + f * taps, taps,
                            past == nullptr ? nullptr : past + f * (taps - 1));
    y.row(row)[f] = bias == nullptr ? sum : sum + bias[f];
  }
};

/// One item per number of a head's value, over a whole sequence of `length` rows. Head h uses the
/// queries of query_of[h] and the keys of key_of[h]; it has one gate per row and decay_size decays:
/// 1, or one per key number. `first` is the initial state, indexed by head, value number and key
/// number; null means 0. With `skips`, skips[h] times the value is added.
template <class T>
struct RecurHeads {
  RecurrenceRule rule = RecurrenceRule::kAdd;
  T scale{};  ///< factor of the outputs
  RowView<const T> queries, keys, values, decays, gates;
  i64 heads = 0;
  i64 key_size = 0;
  i64 value_size = 0;
  i64 decay_size = 1;
  const i64* query_of = nullptr;
  const i64* key_of = nullptr;
  const T* skips = nullptr;
  const T* first = nullptr;
  i64 length = 1;
  T* states = nullptr;    ///< scratch, key_size numbers per item
  i64 states_stride = 0;  ///< scratch stride between items; 0: items run one by one
  RowView<T> y;

  SHARDTOOL_BOTH i64 count() const { return values.count / length * heads * value_size; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    const i64 column = i % (heads * value_size);
    const i64 h = column / value_size;
    T* const state = states + i * states_stride;
    for (i64 k = 0; k < key_size; ++k) {
      state[k] = first == nullptr ? T{} : first[column * key_size + k];
    }
    const i64 begin = i / (heads * value_size) * length;
    for (i64 row = begin; row < begin + length; ++row) {
      const T value = values.row(row)[column];
      const T read = recur(rule, queries.row(row) + query_of[h] * key_size,
                           keys.row(row) + key_of[h] * key_size, value,
                           {decays.row(row) + h * decay_size, decay_size == 1 ? 0 : 1},
                           gates.row(row)[h], key_size, state);
      y.row(row)[column] = scale * read + (skips == nullptr ? T{} : skips[h] * value);
    }
  }
};

/// y[i] = f(x[i]), or f(x[i]) up[i] if `up` is not null. y may alias x.
template <class T>
struct ActivateAll {
  ActivationKind kind = ActivationKind::kLinear;
  const T* x = nullptr;
  const T* up = nullptr;
  i64 n = 0;
  T* y = nullptr;
  bool is_pair = false;     ///< activated_pair(x[i], up[i]) in place of f(x[i]) up[i]
  bool is_limited = false;  ///< x[i] counts as at most `limit`, and up[i] as limited to it
  T limit{};

  SHARDTOOL_BOTH i64 count() const { return n; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    const T gate = is_limited ? at_most(limit, x[i]) : x[i];
    if (up == nullptr) {
      y[i] = activated(kind, gate);
      return;
    }
    const T other = is_limited ? limited(limit, up[i]) : up[i];
    y[i] = is_pair ? activated_pair(gate, other) : activated(kind, gate) * other;
  }
};

/// y[i] = a[i] b[i], or a[i] + b[i]. y may alias a or b.
template <class T>
struct CombineAll {
  bool multiplies = false;
  const T* a = nullptr;
  const T* b = nullptr;
  i64 n = 0;
  T* y = nullptr;

  SHARDTOOL_BOTH i64 count() const { return n; }
  SHARDTOOL_BOTH void operator()(i64 i) const { y[i] = multiplies ? a[i] * b[i] : a[i] + b[i]; }
};

/// y[t][k] = y[t][k] + summand[k].
template <class T>
struct AddToRows {
  RowView<T> y;
  i64 n = 0;  ///< numbers per row
  const T* summand = nullptr;

  SHARDTOOL_BOTH i64 count() const { return y.count * n; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    const auto [t, k] = divided(i, n);
    T& number = y.row(t)[k];
    number = number + summand[k];
  }
};

/// y[t][k] = x[t][k] factor[k]. y may alias x.
template <class T>
struct ScaleRows {
  RowView<const T> x;
  i64 n = 0;  ///< numbers per row
  const T* factor = nullptr;
  RowView<T> y;

  SHARDTOOL_BOTH i64 count() const { return x.count * n; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    const auto [t, k] = divided(i, n);
    y.row(t)[k] = x.row(t)[k] * factor[k];
  }
};

/// y[t][k] = x[t][k] weight[t * stride], or y[t][k] plus that. y may alias x.
template <class T>
struct WeighRows {
  RowView<const T> x;
  i64 n = 0;                  ///< numbers per row
  const T* weight = nullptr;  ///< null: 1
  i64 stride = 1;
  RowView<T> y;
  bool adds = false;

  SHARDTOOL_BOTH i64 count() const { return x.count * n; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    const auto [t, k] = divided(i, n);
    const T number = x.row(t)[k];
    const T weighed = weight == nullptr ? number : weight[t * stride] * number;
    T& sum = y.row(t)[k];
    sum = adds ? sum + weighed : weighed;
  }
};

/// One item per row: route() into chosen[row * top_k] and gaps[row], or the weights of a choice
/// that is given, as many experts as counts[row] of the row's top_k.
template <class T>
struct RouteRows {
  RouterSpec spec;
  RowView<const T> scores;
  const T* correction = nullptr;
  RowView<T> gates;
  i64* chosen = nullptr;
  T* gaps = nullptr;
  const i64* given = nullptr;   ///< in place of chosen and gaps
  const i64* counts = nullptr;  ///< null: top_k

  SHARDTOOL_BOTH i64 count() const { return scores.count; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    const i64 begin = i * spec.top_k;
    if (given == nullptr) {
      gaps[i] = route(spec, scores.row(i), correction, gates.row(i), chosen + begin);
      return;
    }
    RouterSpec of_row = spec;
    if (counts != nullptr) of_row.top_k = counts[i];
    gates_of_choice(of_row, scores.row(i), given + begin, gates.row(i));
  }
};

/// The router of the field, one item per row: every expert is chosen. Its weight is two functions
/// of its score times one of the sum of all, so that a device that is wrong about the experts of
/// others has wrong weights, too. more[row] is added to the sum; it and `correction` may be null.
struct RouteToAll {
  RowView<const Field> scores;
  i64 experts = 0;
  const Field* correction = nullptr;
  const Field* more = nullptr;
  RowView<Field> gates;

  SHARDTOOL_BOTH i64 count() const { return scores.count; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    const Field* const score = scores.row(i);
    Field* const gate = gates.row(i);
    Field sum = more == nullptr ? Field{} : more[i];
    for (i64 e = 0; e < experts; ++e) {
      const Field corrected = correction == nullptr ? score[e] : score[e] + correction[e];
      gate[e] =
          surrogate(Surrogate::kGate, score[e]) + surrogate(Surrogate::kCorrectedGate, corrected);
      sum += gate[e];
    }
    const Field factor = surrogate(Surrogate::kNormaliser, sum);
    for (i64 e = 0; e < experts; ++e) gate[e] = gate[e] * factor;
  }
};

}  // namespace shardtool::kernels
