#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kernels/both.h"
#include "kernels/ops/infinity.h"
#include "kernels/ops/surrogate.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Parameters of the scores of one query.
template <class T>
struct ScoreSpec {
  T scale{};
  T softcap{};                ///< cap * tanh(score / cap); 0: no softcap
  const T* sink = nullptr;    ///< an extra score without a value; null: no sink
  T slope{};                  ///< ALiBi: slope * p is added to the scaled score of position p
  const T* gates = nullptr;   ///< weight of each score; floats: 1 or 0; null: all 1
  const T* biases = nullptr;  ///< per bucket, of this head, added to scaled scores; null: no biases
  const i64* bucket_of = nullptr;  ///< bucket of each position
  const T* key_biases = nullptr;   ///< per position, rows of key_biases_stride; null: no biases
  i64 key_biases_stride = 0;
  i64 entries = 0;                 ///< number of trailing scores that belong to entries
  const T* entry_gates = nullptr;  ///< like gates, for entries

  /// Gate of score i among n; null: 1.
  SHARDTOOL_BOTH const T* gate(i64 i, i64 n) const {
    const i64 entry = i - (n - entries);
    if (entry >= 0) return entry_gates == nullptr ? nullptr : entry_gates + entry;
    return gates == nullptr ? nullptr : gates + i;
  }
};

/// T5's relative position bucket of a key `distance` positions after its query (negative: before
/// it). If `two_sided`, later keys use half of the buckets. Half of a side's buckets hold one
/// distance each, the others grow logarithmically (in f32) up to most_distance.
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

/// DeBERTa's bucket: the upper half is for distances before the query, the lower half for those
/// after it, the middle one for the query's own position. The nearer half of each side has one
/// bucket per distance, the others grow logarithmically (in f32) up to most_distance.
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

/// ALiBi slope of a head: 2^(-8 (h + 1) / n) for the first n heads, n the largest power of two <=
/// `heads`; the others take every second slope of 2n heads.
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

template <class T>
SHARDTOOL_BOTH inline T capped(T softcap, T score) {
  return softcap == T(0) ? score : softcap * std::tanh(score / softcap);
}
SHARDTOOL_BOTH inline Field capped(Field softcap, Field score) {
  return softcap.v == 0 ? score : surrogate(Surrogate::kSoftcap, score + softcap);
}

/// Softmax in place over the n scores whose gate is not 0; the others become 0. All lanes have
/// written their scores before.
template <class Team, class T>
SHARDTOOL_BOTH inline void weigh(const Team& team, const ScoreSpec<T>& spec, T* scores, i64 n) {
  const auto counts = [&spec, n](i64 i) {
    const T* const gate = spec.gate(i, n);
    return gate == nullptr || *gate != T(0);
  };
  const T most = team.template largest<T>(
      n, [=](i64 i) { return counts(i) ? scores[i] : -kInfinity<T>; },
      spec.sink == nullptr ? -kInfinity<T> : *spec.sink);
  T sum = team.template sum<T>(
      n, [=](i64 i) { return scores[i] = counts(i) ? std::exp(scores[i] - most) : T(0); });
  if (spec.sink != nullptr) sum += std::exp(*spec.sink - most);
  team.for_each(n, [=](i64 i) { scores[i] /= sum; });
}

/// Field version: e = phi(score) * gate, weight = e * phi(sum of all e).
template <class Team>
SHARDTOOL_BOTH inline void weigh(const Team& team, const ScoreSpec<Field>& spec, Field* scores,
                                 i64 n) {
  Field sum = team.template sum<Field>(n, [&spec, scores, n](i64 i) {
    const Field* const gate = spec.gate(i, n);
    const Field weight = surrogate(Surrogate::kScore, scores[i]);
    return scores[i] = gate == nullptr ? weight : weight * *gate;
  });
  if (spec.sink != nullptr) sum += surrogate(Surrogate::kSink, *spec.sink);
  const Field factor = surrogate(Surrogate::kNormaliser, sum);
  team.for_each(n, [=](i64 i) { scores[i] *= factor; });
}

/// Keys or values of one head: row i begins at data + i * stride.
template <class T>
struct HeadRows {
  const T* data = nullptr;
  i64 stride = 0;
  i64 size = 0;  ///< numbers per row
};

/// Compressed keys and values, ScoreSpec::entries of them; each covers several positions.
template <class T>
struct EntryRows {
  HeadRows<T> keys, values;
};

/// Score of a position whose key's product with the query is this.
template <class T>
SHARDTOOL_BOTH inline T score_at(const ScoreSpec<T>& spec, T product, i64 p) {
  T score = product * spec.scale;
  if (spec.slope != T{}) score += bias_at(spec.slope, p);
  if (spec.biases != nullptr) score += spec.biases[spec.bucket_of[p]];
  if (spec.key_biases != nullptr) {
    score += spec.key_biases[p * spec.key_biases_stride + spec.bucket_of[p]];
  }
  return capped(spec.softcap, score);
}

/// Attention of one query over positions [begin, end) and the entries, with a team
/// (device/team.h): y = sum of weight * value. `scores` has room for all scores.
template <class Team, class T>
SHARDTOOL_BOTH inline void attend(const Team& team, const ScoreSpec<T>& spec, const T* query,
                                  HeadRows<T> keys, HeadRows<T> values, i64 begin, i64 end,
                                  T* scores, T* y, EntryRows<T> entries = {}) {
  const i64 own = end - begin;
  team.multiply_rows(
      own, [=](i64 i) { return keys.data + (begin + i) * keys.stride; }, keys.size, query,
      [=, &spec](i64 i, T product) { scores[i] = score_at(spec, product, begin + i); });
  team.multiply_rows(
      spec.entries, [=](i64 e) { return entries.keys.data + e * entries.keys.stride; },
      entries.keys.size, query,
      [=, &spec](i64 e, T product) {
        scores[own + e] = capped(spec.softcap, product * spec.scale);
      });
  team.sync();
  weigh(team, spec, scores, own + spec.entries);
  team.sync();
  const auto value_of = [=](i64 i) {
    return i < own ? values.data + (begin + i) * values.stride
                   : entries.values.data + (i - own) * entries.values.stride;
  };
  team.add_rows(own + spec.entries, scores, value_of, values.size, y);
}

}  // namespace shardtool::kernels
