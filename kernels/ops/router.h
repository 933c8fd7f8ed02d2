#pragma once

#include <cmath>

#include "kernels/both.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/infinity.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Maps one token's expert scores to the weights of the chosen experts.
///
///                      ranked by               a group's rank     weights of the chosen
///     kSoftmaxTopK     score                   -                  softmax over all experts
///     kTopKSoftmax     score                   -                  softmax over the chosen
///     kTopKSigmoid     score                   -                  sigmoid
///     kGroupMax        score                   its best           softmax over all experts
///     kSigmoidGroups   sigmoid + correction    its two best       sigmoid, without the correction
///     kCorrectedSoftmax
///                      softmax + correction    -                  softmax, without the correction
///     kCorrectedSigmoid
///                      score + correction      -                  sigmoid, without the correction
///     kRootSoftplus    sqrt(softplus) + correction
///                                              -                  sqrt(softplus), without it
///     kSparseMixer     score                   -                  softmax over the near scores
///     that
///                                                                 were not chosen before it
///
/// A score s is near a score m if m - s <= 2 jitter max(|s|, m).
///
/// `renormalise` then divides by the sum of the weights, or by `least_sum` if that is larger; all
/// weights are multiplied by `scale`. With groups, only experts of the `top_groups` best groups are
/// chosen. Ties go to the lower number.
///
/// These are the functions of transformers 5.23. Older versions of DeepSeek V3's router ranked the
/// experts of other groups as 0, above negative ranks of chosen groups; the release of that model
/// does not.
///
/// R1 1 <= top_k <= experts; groups divides experts; 0 <= top_groups <= groups
/// R2 with groups, top_groups groups have top_k experts or more
struct RouterSpec {
  enum class Kind {
    kSoftmaxTopK,
    kTopKSoftmax,
    kTopKSigmoid,
    kGroupMax,
    kSigmoidGroups,
    kCorrectedSoftmax,
    kCorrectedSigmoid,
    kRootSoftplus,
    kSparseMixer
  };
  Kind kind = Kind::kSoftmaxTopK;
  i64 experts = 1;
  i64 top_k = 1;
  bool renormalise = false;
  double scale = 1;
  i64 groups = 0;      ///< 0: no groups
  i64 top_groups = 0;  ///< 0: all groups
  double least_sum = 0;
  double jitter = 0;  ///< for kSparseMixer

  /// True if an expert's weight depends on its own score only.
  SHARDTOOL_BOTH bool is_by_itself() const {
    return kind == Kind::kSigmoidGroups || kind == Kind::kTopKSigmoid ||
           kind == Kind::kCorrectedSigmoid || kind == Kind::kRootSoftplus;
  }
  /// Returns that weight. Requires is_by_itself().
  template <class T>
  SHARDTOOL_BOTH T weight_of(T score) const {
    return kind == Kind::kRootSoftplus ? std::sqrt(softplus(score)) : sigmoid(score);
  }
  SHARDTOOL_BOTH bool cuts_groups() const { return top_groups > 0 && top_groups < groups; }
};

/// Rank and number of an expert or of a group.
template <class T>
struct Ranked {
  T rank;
  i64 number;

  SHARDTOOL_BOTH bool before(const Ranked& other) const {
    return rank > other.rank || (rank == other.rank && number < other.number);
  }
};

/// Returns the first of `count` numbers after `last` in descending rank, or number -1 if there is
/// none. `rank_of` returns the rank of a number. O(count).
template <class T, class RankOf>
SHARDTOOL_BOTH inline Ranked<T> next_after(const Ranked<T>& last, i64 count,
                                           const RankOf& rank_of) {
  Ranked<T> best{-kInfinity<T>, -1};
  for (i64 i = 0; i < count; ++i) {
    const Ranked<T> one{rank_of(i), i};
    if (last.before(one) && (best.number < 0 || one.before(best))) best = one;
  }
  return best;
}

/// Sentinel before every number.
template <class T>
SHARDTOOL_BOTH inline Ranked<T> before_all() {
  return {kInfinity<T>, -1};
}

/// Rank of a group: its best expert's, or the sum of its two best ones'.
template <class T>
SHARDTOOL_BOTH inline T group_rank(const RouterSpec& spec, const T* ranks, i64 group) {
  const i64 size = spec.experts / spec.groups;
  const auto rank_of = [&](i64 i) { return ranks[group * size + i]; };
  const Ranked<T> first = next_after(before_all<T>(), size, rank_of);
  if (spec.kind != RouterSpec::Kind::kSigmoidGroups || size < 2) return first.rank;
  return first.rank + next_after(first, size, rank_of).rank;
}

/// The largest score and the sum of e^(score - largest), over all experts or over the chosen.
template <class T>
struct SoftmaxBase {
  T largest;
  T sum;

  template <class ScoreOf>
  SHARDTOOL_BOTH static SoftmaxBase over(i64 count, const ScoreOf& score_of) {
    SoftmaxBase base{score_of(0), T(0)};
    for (i64 i = 1; i < count; ++i) {
      if (score_of(i) > base.largest) base.largest = score_of(i);
    }
    for (i64 i = 0; i < count; ++i) base.sum += std::exp(score_of(i) - base.largest);
    return base;
  }
  SHARDTOOL_BOTH T of(T score) const { return std::exp(score - largest) / sum; }
};

/// Sum of e^(score - the one chosen at `place`) over the near scores that were not chosen before.
/// If `edge` is given, it is lowered to the smallest distance of a score from the limit of near.
template <class T>
SHARDTOOL_BOTH inline T sum_of_near(const RouterSpec& spec, const T* scores, const i64* chosen,
                                    i64 place, T* edge = nullptr) {
  const T largest = scores[chosen[place]];
  T sum = T(0);
  for (i64 e = 0; e < spec.experts; ++e) {
    bool is_before = false;
    for (i64 i = 0; i < place; ++i) is_before = is_before || chosen[i] == e;
    if (is_before) continue;
    const T size = std::abs(scores[e]) > largest ? std::abs(scores[e]) : largest;
    const T beyond = (largest - scores[e]) / size - T(2 * spec.jitter);
    const bool is_edge = edge != nullptr && e != chosen[place];
    if (is_edge && std::abs(beyond) < *edge) *edge = std::abs(beyond);
    // NaN if all are 0, which counts as near.
    if (!(beyond > T(0))) sum += std::exp(scores[e] - largest);
  }
  return sum;
}

/// Fills ranks[experts], ignoring groups.
template <class T>
SHARDTOOL_BOTH inline void rank_scores(const RouterSpec& spec, const T* scores, const T* correction,
                                       T* ranks) {
  using Kind = RouterSpec::Kind;
  const bool is_softmax = spec.kind == Kind::kCorrectedSoftmax;
  const bool is_by_weight = spec.kind == Kind::kSigmoidGroups || spec.kind == Kind::kRootSoftplus;
  const bool is_corrected = is_softmax || is_by_weight || spec.kind == Kind::kCorrectedSigmoid;
  const auto base =
      SoftmaxBase<T>::over(is_softmax ? spec.experts : 1, [scores](i64 e) { return scores[e]; });
  for (i64 e = 0; e < spec.experts; ++e) {
    ranks[e] = is_softmax     ? base.of(scores[e])
               : is_by_weight ? spec.weight_of(scores[e])
                              : scores[e];
    if (is_corrected && correction != nullptr) ranks[e] += correction[e];
  }
}

/// Fills ranks[experts], minus infinity outside of the chosen groups. Returns the rank distance
/// between the last chosen group and the next one; infinity if all are chosen.
template <class T>
SHARDTOOL_BOTH inline T rank_experts(const RouterSpec& spec, const T* scores, const T* correction,
                                     T* ranks) {
  rank_scores(spec, scores, correction, ranks);
  if (!spec.cuts_groups()) return kInfinity<T>;
  const auto rank_of = [&](i64 group) { return group_rank(spec, ranks, group); };
  Ranked<T> last = before_all<T>();
  for (i64 i = 0; i < spec.top_groups; ++i) last = next_after(last, spec.groups, rank_of);
  const T gap = last.rank - next_after(last, spec.groups, rank_of).rank;
  const i64 size = spec.experts / spec.groups;
  for (i64 group = 0; group < spec.groups; ++group) {
    if (!last.before({rank_of(group), group})) continue;
    for (i64 e = group * size; e < (group + 1) * size; ++e) ranks[e] = -kInfinity<T>;
  }
  return gap;
}

/// Gap of a choice of kSparseMixer. It includes the order of the chosen experts and the limit of
/// near for each.
template <class T>
SHARDTOOL_BOTH inline T mixer_gap(const RouterSpec& spec, const T* scores, const i64* chosen) {
  T gap = kInfinity<T>;
  for (i64 i = 0; i < spec.top_k; ++i) {
    sum_of_near(spec, scores, chosen, i, &gap);
    if (i == 0) continue;
    const T before = scores[chosen[i - 1]] - scores[chosen[i]];
    if (before < gap) gap = before;
  }
  return gap;
}

/// Writes chosen[top_k], best first. `work` has room for `experts` values. Returns the gap of the
/// choice: the rank distance between the last chosen expert or group and the first other one, or
/// mixer_gap; infinity if all are chosen. Scores must not be NaN. O(experts * top_k).
template <class T>
SHARDTOOL_BOTH inline T choose_experts(const RouterSpec& spec, const T* scores, const T* correction,
                                       T* work, i64* chosen) {
  const T group_gap = rank_experts(spec, scores, correction, work);
  const auto rank_of = [&](i64 expert) { return work[expert]; };
  Ranked<T> last = before_all<T>();
  for (i64 i = 0; i < spec.top_k; ++i) {
    last = next_after(last, spec.experts, rank_of);
    chosen[i] = last.number;
  }
  const Ranked<T> next = next_after(last, spec.experts, rank_of);
  const T gap = next.number < 0 ? kInfinity<T> : last.rank - next.rank;
  const T other_gap =
      spec.kind == RouterSpec::Kind::kSparseMixer ? mixer_gap(spec, scores, chosen) : group_gap;
  return gap < other_gap ? gap : other_gap;
}

/// Computes the weights of a given choice, such as the reference's: writes gates[experts], zero for
/// experts not chosen. An expert that is chosen twice counts twice.
template <class T>
SHARDTOOL_BOTH inline void gates_of_choice(const RouterSpec& spec, const T* scores,
                                           const i64* chosen, T* gates) {
  using Kind = RouterSpec::Kind;
  const bool is_over_chosen = spec.kind == Kind::kTopKSoftmax;
  const bool is_mixer = spec.kind == Kind::kSparseMixer;
  const auto base = SoftmaxBase<T>::over(is_over_chosen ? spec.top_k : spec.experts, [&](i64 i) {
    return scores[is_over_chosen ? chosen[i] : i];
  });
  for (i64 e = 0; e < spec.experts; ++e) gates[e] = T(0);
  T sum = T(0);
  for (i64 i = 0; i < spec.top_k; ++i) {
    const T score = scores[chosen[i]];
    const T gate = is_mixer              ? T(1) / sum_of_near(spec, scores, chosen, i)
                   : spec.is_by_itself() ? spec.weight_of(score)
                                         : base.of(score);
    gates[chosen[i]] += gate;
    sum += gate;
  }
  // All sigmoids may be 0; the reference guards with the same constant. Softmaxes never are.
  if (spec.is_by_itself()) sum += T(1e-20);
  if (sum < T(spec.least_sum)) sum = T(spec.least_sum);
  const T factor = T(spec.scale);
  for (i64 e = 0; e < spec.experts; ++e) {
    gates[e] = (spec.renormalise ? gates[e] / sum : gates[e]) * factor;
  }
}

/// Chooses experts and computes gates[experts]; chosen[top_k] is best first. Returns the gap of
/// choose_experts.
template <class T>
SHARDTOOL_BOTH inline T route(const RouterSpec& spec, const T* scores, const T* correction,
                              T* gates, i64* chosen) {
  const T gap = choose_experts(spec, scores, correction, gates, chosen);
  gates_of_choice(spec, scores, chosen, gates);
  return gap;
}

}  // namespace shardtool::kernels
