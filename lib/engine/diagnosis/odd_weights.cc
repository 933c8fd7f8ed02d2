#include "lib/engine/diagnosis/odd_weights.h"

#include <set>

#include "lib/engine/weights/block_grid.h"

namespace shardtool::engine {
namespace {

void add(const std::string& name, bool is_shard, i64 rank, const kernels::FloatCensus& census,
         std::vector<OddWeight>& odd) {
  if (census.nan == 0 && census.infinite == 0) return;
  const bool is_known = !odd.empty() && odd.back().tensor == name &&
                        odd.back().is_shard == is_shard && odd.back().rank == rank;
  if (!is_known) odd.push_back({name, is_shard, rank, 0, 0});
  odd.back().nan += census.nan;
  odd.back().infinite += census.infinite;
}

/// Tensors of the op that no product streams, so that each is read at once.
std::set<size_t> small_tensors(const Side& side, const ops::BoundOp& op,
                               std::span<const i64> ranks) {
  std::set<size_t> streamed;
  for (const i64 rank : ranks) {
    for (const MatrixProduct& product : products_of(side, op, rank))
      streamed.insert(product.tensor);
  }
  std::set<size_t> small;
  for (const ops::BoundWeight& weight : op.weights) {
    for (const size_t tensor : weight) {
      if (streamed.count(tensor) == 0) small.insert(tensor);
      const bool is_scaled = bits(side.tensors[tensor].dtype) == 8;
      const auto scales = is_scaled ? scale_tensor_of(side, tensor) : std::nullopt;
      if (scales) small.insert(*scales);
    }
  }
  return small;
}

}  // namespace

void add_odd_weights(const Side& side, bool is_shard, size_t tensor, i64 rank,
                     const kernels::FloatCensus& census, std::vector<OddWeight>& odd) {
  add(side.tensors[tensor].name, is_shard, rank, census, odd);
}

void visit_small_weights(const Side& side, const ops::BoundOp& op, std::span<const i64> ranks,
                         const WeightVisitor& visit) {
  if (op.weights.empty()) return;
  for (const size_t tensor : small_tensors(side, op, ranks)) {
    for (const i64 rank : ranks) {
      const auto region = side.layouts(tensor).region(rank);
      if (!region) continue;
      const TensorSpec& spec = side.tensors[tensor];
      const Shape shape = index::local_shape(*region);
      const auto bytes = byte_size(spec.dtype, shape);
      if (bytes.value_or(0) == 0) continue;
      std::vector<std::byte> stored(static_cast<size_t>(*bytes));
      side.weights->read({tensor, rank, -1, 0, shape.empty() ? 1 : shape[0]}, stored);
      visit(tensor, rank, stored);
    }
  }
}

}  // namespace shardtool::engine
