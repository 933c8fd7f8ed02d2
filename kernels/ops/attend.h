#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kernels/both.h"
#include "kernels/ops/infinity.h"
#include "kernels/ops/surrogate.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// The scores of one query and what becomes of them.
template <class T>
struct ScoreSpec {
  T scale{};
  T softcap{};                ///< 0: none: cap * tanh(score / cap)
  const T* sink = nullptr;    ///< one more score that no value belongs to; null: none
  T slope{};                  ///< of a linear bias: the score for position p, scaled, + slope * p
  const T* gates = nullptr;   ///< of every score how much it counts; of floats 1 or 0; null: 1
  const T* biases = nullptr;  ///< of the head, by bucket: added to scaled scores; null: none
  const i64* bucket_of = nullptr;  ///< of every position
  const T* key_biases = nullptr;   ///< the same of every position, stride by stride; null: none
  i64 key_biases_stride = 0;
  i64 entries = 0;                 ///< so many of the scores, the last ones, are of entries
  const T* entry_gates = nullptr;  ///< the same as gates, of these

  /// Of score i among n; null: it counts as 1.
  SHARDTOOL_BOTH const T* gate(i64 i, i64 n) const {
    const i64 entry = i - (n - entries);
    if (entry >= 0) return entry_gates == nullptr ? nullptr : entry_gates + entry;
    return gates == nullptr ? nullptr : gates + i;
  }
};

/// The bucket of a key `distance` positions after its query (before it: negative). Of T5's code:
/// with `two_sided` ones those after it have half of them; half of the rest are for one distance
/// each, the others for ever more, up to most_distance, by a logarithm in f32.
inline i64 position_bucket(i64 distance, i64 buckets, double most_distance, bool two_sided) {
  const i64 of_side = two_sided ? buckets / 2 : buckets;
  const i64 first = two_sided && distance > 0 ? of_side : 0;
  const i64 far = two_sided ? std::abs(distance) : std::max<i64>(0, -distance);
  const i64 exact = of_side / 2;
  if (far < exact) return first + far;
  const auto octaves = static_cast<float>(std::log(most_distance / static_cast<double>(exact)));
  const float share = std::log(static_cast<float>(far) / static_cast<float>(exact)) / octaves;
  const auto further = static_cast<i64>(share * static_cast<float>(of_side - exact));
  return first + std::min(exact + further, of_side - 1);
}

/// The same of DeBERTa's code: distances before the query have the upper half of the buckets, those
/// after it the lower one, and the query's own is the middle one. The nearer half of each has a
/// bucket for one distance, the others have them by a logarithm in f32, up to most_distance.
inline i64 signed_bucket(i64 distance, i64 buckets, double most_distance) {
  const i64 of_side = buckets / 2;
  const i64 exact = of_side / 2;
  i64 steps = std::abs(distance);
  if (steps > exact) {
    const auto last = static_cast<float>((most_distance - 1) / static_cast<double>(exact));
    const float octaves = std::log(static_cast<float>(steps) / static_cast<float>(exact));
    const float share = octaves / std::log(last) * static_cast<float>(exact - 1);
    steps = static_cast<i64>(std::ceil(share)) + exact;
  }
  return std::clamp<i64>(of_side + (distance < 0 ? steps : -steps), 0, buckets - 1);
}

/// The slope of one of `heads` heads: 2^(-8 (h + 1) / n) for the first n, the largest power of two
/// that is no more than `heads`, and for the others every second one of what 2n heads would have.
inline double alibi_slope(i64 head, i64 heads) {
  i64 n = 1;
  while (2 * n <= heads) n *= 2;
  const double step =
      head < n ? static_cast<double>(head + 1) : (2 * static_cast<double>(head - n) + 1) / 2;
  return std::exp2(-8 * step / static_cast<double>(n));
}

/// slope * p.
template <class T>
SHARDTOOL_BOTH inline T bias_at(T slope, i64 position) {
  return slope * static_cast<T>(position);
}
SHARDTOOL_BOTH inline Field bias_at(Field slope, i64 position) {
  return slope * Field::from_signed(position);
}

/// Softmax over those of n scores that count, which are scaled, in place; 0 for the others.
template <class T>
SHARDTOOL_BOTH inline void weigh(const ScoreSpec<T>& spec, T* scores, i64 n) {
  const auto counts = [&spec, n](i64 i) {
    const T* const gate = spec.gate(i, n);
    return gate == nullptr || *gate != T(0);
  };
  T most = spec.sink == nullptr ? -kInfinity<T> : *spec.sink;
  for (i64 i = 0; i < n; ++i) {
    if (spec.softcap != T(0)) scores[i] = spec.softcap * std::tanh(scores[i] / spec.softcap);
    if (counts(i) && scores[i] > most) most = scores[i];
  }
  T sum = spec.sink == nullptr ? T(0) : std::exp(*spec.sink - most);
  for (i64 i = 0; i < n; ++i) {
    scores[i] = counts(i) ? std::exp(scores[i] - most) : T(0);
    sum += scores[i];
  }
  for (i64 i = 0; i < n; ++i) scores[i] /= sum;
}

/// e = phi(score) * gate, weight = e * phi(sum of all e).
SHARDTOOL_BOTH inline void weigh(const ScoreSpec<Field>& spec, Field* scores, i64 n) {
  Field sum = spec.sink == nullptr ? Field{} : surrogate(Surrogate::kSink, *spec.sink);
  for (i64 i = 0; i < n; ++i) {
    if (spec.softcap.v != 0) scores[i] = surrogate(Surrogate::kSoftcap, scores[i] + spec.softcap);
    scores[i] = surrogate(Surrogate::kScore, scores[i]);
    if (const Field* const gate = spec.gate(i, n)) scores[i] *= *gate;
    sum += scores[i];
  }
  const Field factor = surrogate(Surrogate::kNormaliser, sum);
  for (i64 i = 0; i < n; ++i) scores[i] *= factor;
}

/// One head's keys or values: row i begins at data + i * stride.
template <class T>
struct HeadRows {
  const T* data = nullptr;
  i64 stride = 0;
  i64 size = 0;  ///< numbers of the head
};

/// Keys and values beside those of positions, ScoreSpec::entries of them: each stands for several.
template <class T>
struct EntryRows {
  HeadRows<T> keys, values;
};

/// One query against positions [begin, end), and the entries: y = sum of weight * value. `scores`
/// has room for all of them.
template <class T>
SHARDTOOL_BOTH inline void attend(const ScoreSpec<T>& spec, const T* query, HeadRows<T> keys,
                                  HeadRows<T> values, i64 begin, i64 end, T* scores, T* y,
                                  EntryRows<T> entries = {}) {
  for (i64 p = begin; p < end; ++p) {
    T score{};
    for (i64 i = 0; i < keys.size; ++i) score += query[i] * keys.data[p * keys.stride + i];
    score *= spec.scale;
    if (spec.slope != T{}) score += bias_at(spec.slope, p);
    if (spec.biases != nullptr) score += spec.biases[spec.bucket_of[p]];
    if (spec.key_biases != nullptr) {
      score += spec.key_biases[p * spec.key_biases_stride + spec.bucket_of[p]];
    }
    scores[p - begin] = score;
  }
  const i64 own = end - begin;
  for (i64 e = 0; e < spec.entries; ++e) {
    T score{};
    for (i64 i = 0; i < entries.keys.size; ++i) {
      score += query[i] * entries.keys.data[e * entries.keys.stride + i];
    }
    scores[own + e] = score * spec.scale;
  }
  weigh(spec, scores, own + spec.entries);
  for (i64 i = 0; i < values.size; ++i) {
    T sum{};
    for (i64 p = begin; p < end; ++p) sum += scores[p - begin] * values.data[p * values.stride + i];
    for (i64 e = 0; e < spec.entries; ++e) {
      sum += scores[own + e] * entries.values.data[e * entries.values.stride + i];
    }
    y[i] = sum;
  }
}

}  // namespace shardtool::kernels
