#pragma once

#include <optional>
#include <string>

#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

namespace shardtool::ops {

/// The layers whose attention is limited to the last `size` positions, to the positions nearer than
/// `size` if it is bidirectional, or to those since the last multiple of `size` (kChunked).
struct Window {
  enum class Kind { kSliding, kChunked };
  Kind kind = Kind::kSliding;
  std::optional<LayerSet> layers;  ///< unset: all layers
  std::string config;              ///< path of the size; empty, or null or 0 there: no window
  i64 otherwise = 0;               ///< the size if the config lacks the path; 0: no window
  std::string before;              ///< path of a size that excludes the token itself; has priority
  /// Path of the size of both sides together without the token itself; half is on each side. Has
  /// priority.
  std::string around;
  std::string when;  ///< path of a condition; empty: always
};

/// Linear biases (ALiBi, Press et al. 2021): adds p times the head's slope to the score of position
/// p. The slope follows from the number of heads.
enum class Alibi { kNone, kBeforeScale, kAfterScale };

/// The lightning indexer of sparse attention (DeepSeek V3.2): an attention sees the `top_k`
/// positions with the best scores, sums over `heads` of a weight times relu(query * key).
struct PositionIndex {
  Dim heads, dim, top_k;
  bool made_before = false;  ///< uses the choice of an earlier layer
};

/// Relative position buckets (T5). Each near distance has its own bucket; further ones share
/// buckets by their logarithm, up to most_distance. If an attention sees later positions, they get
/// half of the buckets. With kSigned (DeBERTa), buckets of earlier positions go outwards from the
/// middle.
struct Buckets {
  enum class Kind { kOneSided, kSigned };
  Kind kind = Kind::kOneSided;
  Dim count;
  Number most_distance;
  bool of_keys = false;  ///< biases for keys, too, by the same buckets
};

/// The T5 bias that every head adds to its scores by distance: the stored table [buckets, heads] as
/// a value, equal for every token, head by head.
struct PositionBias {
  Dim heads, buckets;
};
void decode(PositionBias& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const PositionBias& op, const RuleSite& site);
Value place(const PositionBias& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const PositionBias& op, const OpAt<N>& at);

/// Disentangled attention (DeBERTa): scores of every head's query, or key, with a key per bucket. A
/// bucket's key is its row of a stored table [buckets, size], normed if there are norm weights, and
/// projected. The result has the buckets head by head.
struct BucketScores {
  Dim rows, head_dim, size;
  Buckets buckets;
  Number eps;
  Number scale{{}, 1};          ///< multiplies the scores
  std::optional<Dim> scale_of;  ///< its square root divides the scores, too
};
void decode(BucketScores& op, OpDecoder& in);
void check(const BucketScores& op, const Widths& widths);
std::vector<plan::OpRow> rules(const BucketScores& op, const RuleSite& site);
Value place(const BucketScores& op, Walk& walk, const BoundOp& bound);
void price(const BucketScores& op, Pricing& pricing);
bool is_launched(const BucketScores& op);
template <class N>
Part<N> apply(const BucketScores& op, const OpAt<N>& at);

/// Scaled dot-product attention. Inputs are queries, keys and values; then, with an index, its
/// queries [heads * dim], keys [dim] and weights [heads]; with entries, their keys and values; with
/// buckets, the biases of queries and then those of keys.
struct Attention {
  Dim heads, kv_heads, key_dim, value_dim;
  Number scale{{}, 1};          ///< multiplies the scores
  std::optional<Dim> scale_of;  ///< its square root divides the scores, too
  bool yarn_scale = false;      ///< multiplies the scores by the square of yarn's factor, too
  bool causal = true;
  std::optional<Window> window;
  Number softcap;  ///< 0: none
  Alibi alibi = Alibi::kNone;
  std::optional<Dim> cache;   ///< cached elements per position; unset: the keys and values
  std::optional<Dim> latent;  ///< the first of `cache`, of which keys and values are made; a decode
                              ///< step attends to these themselves, once for every head
  std::optional<PositionIndex> index;  ///< over entries if there are any, else over positions
  /// Compressed KV: one entry per this many positions, in the row of the last one. Later positions
  /// see it, also outside of the window.
  std::optional<Dim> entries;
  std::optional<Buckets> buckets;
};
/// Number of an attention's inputs that are biases.
inline size_t biases_of(const Attention& attention) {
  if (!attention.buckets) return 0;
  return attention.buckets->of_keys ? 2 : 1;
}
void decode(Attention& op, OpDecoder& in);
void check(const Attention& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Attention& op, const RuleSite& site);
Value place(const Attention& op, Walk& walk, const BoundOp& bound);
void price(const Attention& op, Pricing& pricing);
bool is_launched(const Attention& op);
template <class N>
Part<N> apply(const Attention& op, const OpAt<N>& at);

}  // namespace shardtool::ops
