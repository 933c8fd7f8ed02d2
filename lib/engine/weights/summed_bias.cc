#include "lib/engine/weights/summed_bias.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/engine/names.h"
#include "lib/layout/axis_expr.h"

namespace shardtool::engine {
namespace {

using Numbers = std::vector<double>;

/// Mesh axes over which the op's matrix is cut, along which its products are summed.
std::vector<std::string> axes_of_sum(const Side& shards, const ops::BoundOp& op) {
  std::vector<std::string> axes;
  for (const layout::LayoutAxis& axis : shards.layouts(op.weights.front().front()).axes()) {
    for (const mesh::AxisRef& ref : layout::axes_used(axis.expr)) axes.push_back(ref.axis);
  }
  return axes;
}

bool is_in_first_group(const Side& shards, i64 rank, const std::vector<std::string>& along) {
  const auto& axes = shards.mesh.axes();
  return std::all_of(axes.begin(), axes.end(), [&](const mesh::MeshAxis& axis) {
    return std::find(along.begin(), along.end(), axis.name) != along.end() ||
           shards.mesh.index_on(axis.name, rank) == 0;
  });
}

Numbers sum_of_shares(const Side& shards, const std::vector<std::string>& along, size_t tensor,
                      size_t size) {
  Numbers sum(size);
  for (const i64 rank : shards.layouts(tensor).ranks()) {
    if (!is_in_first_group(shards, rank, along)) continue;
    const auto share = load_small<double>(shards, kernels::NumberMap::kValue, tensor, rank);
    if (share.region.size() != 1) continue;
    for (const index::Piece& piece : share.region.front().pieces()) {
      for (i64 i = 0; i < piece.size; ++i) {
        sum[static_cast<size_t>(piece.global + i)] +=
            share.data[static_cast<size_t>(piece.local + i)];
      }
    }
  }
  return sum;
}

}  // namespace

bool is_share_of_sum(const Side& shards, const ops::BoundOp& op, size_t tensor) {
  const bool is_bias = op.weights.size() > 1 && !op.weights[1].empty() &&
                       op.weights[1].front() == tensor && !op.weights[0].empty();
  return is_bias && shards.sum_bias(tensor) != SumBias::kAfterReduction;
}

std::string describe_summed_bias(const Side& whole, const Side& shards, const ops::BoundOp& op,
                                 size_t tensor) {
  const auto found = whole.by_name.find(shards.tensors[tensor].name);
  if (found == whole.by_name.end()) return "";
  const Numbers expected =
      load_small<double>(whole, kernels::NumberMap::kValue, found->second, 0).data;
  const Numbers sum = sum_of_shares(shards, axes_of_sum(shards, op), tensor, expected.size());
  double product = 0;
  double square = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    product += sum[i] * expected[i];
    square += expected[i] * expected[i];
  }
  const double times = square > 0 ? product / square : 1;
  double apart = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    apart = std::max(apart, std::abs(sum[i] - times * expected[i]));
  }
  constexpr double kRounding = 1e-3;
  if (apart > kRounding * std::sqrt(square)) return "the ranks' shards do not add up to it";
  if (std::abs(times - 1) < kRounding) return "";
  if (std::abs(times) < kRounding) return "is missing from the sum";
  return fmt::format("is counted {:.4g} times in the sum over ranks", times);
}

}  // namespace shardtool::engine
