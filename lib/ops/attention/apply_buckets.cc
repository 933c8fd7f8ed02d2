#include <algorithm>
#include <cmath>

#include "kernels/ops/attend.h"
#include "kernels/ops/norm.h"
#include "lib/ops/attention/buckets.h"
#include "lib/ops/body.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;

/// Returns the weight of a stored bucket in a used one. In the field buckets are mixed, so that
/// each one affects the result even if few distances occur.
template <class N>
N share_of_bucket(i64 bucket, i64 stored, i64 buckets) {
  if constexpr (is_field<N>) {
    constexpr std::uint64_t kSeed = 0xb0c4;
    return kernels::field_random(kSeed, static_cast<std::uint64_t>(bucket * buckets + stored));
  } else {
    return static_cast<N>(bucket == stored ? 1 : 0);
  }
}

/// Computes the keys of the buckets with this device's rows of the projection.
template <class N>
class BucketKeys {
 public:
  BucketKeys(const BucketScores& op, const OpAt<N>& at)
      : size_(at.model.size(op.size)),
        count_(at.model.size(op.buckets.count)),
        projection_(load_rows(at, kProjection, at.in[0]->features, size_)),
        bias_(load_vector(at, at.op.weights[kBias].front(), at.in[0]->features)),
        rows_(
            load_small<N>(at.weights, at.inputs.map, at.op.weights[kTable].front(), at.rank).data) {
    if (!at.op.weights[kNorm].empty()) norm(op, at);
  }

  std::vector<N> of(i64 bucket) const {
    std::vector<N> row(static_cast<size_t>(size_));
    for (i64 stored = 0; stored < count_; ++stored) {
      const N share = share_of_bucket<N>(bucket, stored, count_);
      if (share == N{}) continue;
      for (i64 i = 0; i < size_; ++i) row[static_cast<size_t>(i)] += share * rows_[at(stored, i)];
    }
    std::vector<N> key = bias_;
    for (i64 f = 0; f < std::ssize(key); ++f) {
      for (i64 i = 0; i < size_; ++i) {
        key[static_cast<size_t>(f)] += projection_[at(f, i)] * row[static_cast<size_t>(i)];
      }
    }
    return key;
  }

 private:
  static constexpr size_t kTable = 0, kNorm = 1, kNormBias = 2, kProjection = 3, kBias = 4;

  size_t at(i64 row, i64 i) const { return static_cast<size_t>(row * size_ + i); }

  void norm(const BucketScores& op, const OpAt<N>& at) {
    const kernels::NormSpec spec{kernels::NormKind::kLayer,
                                 mapping::value_of(op.eps, at.model.config), false};
    const AxisMap features = AxisMap::identity(size_);
    const auto weight = load_vector(at, at.op.weights[kNorm].front(), features);
    const auto bias = load_vector(at, at.op.weights[kNormBias].front(), features);
    const std::vector<N> stored = rows_;
    const kernels::HostTeam team(kernels::lanes_for(size_));
    for (i64 b = 0; b < count_; ++b) {
      kernels::norm_row(team, spec, stored.data() + b * size_, weight.data(), bias.data(), size_,
                        rows_.data() + b * size_);
    }
  }

  i64 size_, count_;
  std::vector<N> projection_, bias_, rows_;
};

}  // namespace

std::vector<i64> buckets_of(const Buckets& op, const ModelSizes& model, i64 length,
                            bool two_sided) {
  const i64 count = model.size(op.count);
  const double most = mapping::value_of(op.most_distance, model.config);
  std::vector<i64> found;
  for (i64 d = 1 - length; d < length; ++d) {
    found.push_back(op.kind == Buckets::Kind::kSigned
                        ? kernels::signed_bucket(d, count, most)
                        : kernels::position_bucket(d, count, most, two_sided));
  }
  return found;
}

template <class N>
Part<N> apply(const PositionBias& op, const OpAt<N>& at) {
  const auto table =
      load_small<N>(at.weights, at.inputs.map, at.op.weights.front().front(), at.rank);
  const AxisMap& heads = table.region.back();
  const i64 buckets = at.model.size(op.buckets);
  Part<N> first = empty_part<N>(index::scale(heads, buckets), 1);
  for (i64 h = 0; h < heads.local_size(); ++h) {
    for (i64 b = 0; b < buckets; ++b) {
      for (i64 stored = 0; stored < buckets; ++stored) {
        first.row(0)[h * buckets + b] +=
            share_of_bucket<N>(b, stored, buckets) *
            table.data[static_cast<size_t>(stored * heads.local_size() + h)];
      }
    }
  }
  Part<N> y = empty_part<N>(first.features, at.inputs.rows());
  for (i64 t = 0; t < at.inputs.rows(); ++t) std::ranges::copy(first.data, y.row(t));
  return y;
}

/// Skips buckets without any distance.
template <class N>
Part<N> apply(const BucketScores& op, const OpAt<N>& at) {
  const ModelSizes& model = at.model;
  const Part<N>& x = *at.in[0];
  const i64 head_dim = model.size(op.head_dim);
  const i64 count = model.size(op.buckets.count);
  const AxisMap heads = units_of(x.features, head_dim, at.op.op->in[0]);
  double scale = mapping::value_of(op.scale, model.config);
  if (op.scale_of) scale /= std::sqrt(static_cast<double>(model.size(*op.scale_of)));
  const N factor = number_of<N>(scale);
  const BucketKeys<N> keys(op, at);
  std::vector<i64> buckets = buckets_of(op.buckets, model, at.inputs.length, true);
  std::ranges::sort(buckets);
  const auto repeated = std::ranges::unique(buckets);
  buckets.erase(repeated.begin(), repeated.end());
  Part<N> y = empty_part<N>(index::scale(heads, count), at.inputs.rows());
  for (const i64 bucket : buckets) {
    const std::vector<N> key = keys.of(bucket);
    for (i64 t = 0; t < at.inputs.rows(); ++t) {
      for (i64 f = 0; f < x.width(); ++f) {
        y.row(t)[f / head_dim * count + bucket] += x.row(t)[f] * key[static_cast<size_t>(f)];
      }
      for (i64 h = 0; h < heads.local_size(); ++h) y.row(t)[h * count + bucket] *= factor;
    }
  }
  return y;
}

SHARDTOOL_BODY(PositionBias)
SHARDTOOL_BODY(BucketScores)

}  // namespace shardtool::ops
