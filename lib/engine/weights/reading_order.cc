#include "lib/engine/weights/reading_order.h"

#include <algorithm>
#include <map>

#include "lib/engine/weights/row_chunks.h"
#include "lib/mesh/rank_groups.h"

namespace shardtool::engine {
namespace {

/// The only matrix of an op, or nullopt for ops with none or several.
std::optional<size_t> matrix_of(const ops::BoundOp& bound) {
  const auto& kind = bound.op->kind;
  const bool has_one =
      std::holds_alternative<ops::Embed>(kind) || std::holds_alternative<ops::Linear>(kind);
  if (!has_one) return std::nullopt;
  return bound.weights.front().front();
}

using ProductLists = std::map<i64, std::vector<MatrixProduct>>;  ///< by rank

/// Returns the tensors of all these matrices, each once.
std::vector<size_t> tensors_of(const ProductLists& lists) {
  std::set<size_t> tensors;
  for (const auto& [rank, products] : lists) {
    for (const MatrixProduct& product : products) tensors.insert(product.tensor);
  }
  return {tensors.begin(), tensors.end()};
}

bool is_table_of_words(const ops::BoundOp& bound) {
  const auto* embed = std::get_if<ops::Embed>(&bound.op->kind);
  return embed != nullptr && embed->by == ops::Embed::By::kToken;
}

}  // namespace

ReadingOrder::ReadingOrder(const Scope& scope) : scope_(scope), layer_(scope.stretch.begin) {
  for (size_t layer = 0; layer < scope_.layers.size(); ++layer) {
    const auto& steps = scope_.layers[layer].whole.flow.steps;
    for (size_t step = 0; step < steps.size(); ++step) {
      const bool is_table = is_table_of_words(*steps[step].op);
      if (is_table && is_multiplied_elsewhere(layer, step)) looked_up_.emplace(layer, step);
    }
  }
}

bool ReadingOrder::is_multiplied_elsewhere(size_t layer, size_t step) const {
  const LayerPair& here = scope_.layers[layer];
  const auto of_whole = matrix_of(*here.whole.flow.steps[step].op);
  const auto of_shards = matrix_of(*here.shards.flow.steps[step].op);
  for (const LayerPair& there : scope_.layers) {
    if (!std::ranges::includes(there.shards.devices, here.shards.devices)) continue;
    for (size_t s = 0; s < there.whole.flow.steps.size(); ++s) {
      const ops::BoundOp& op = *there.whole.flow.steps[s].op;
      const bool is_product = std::holds_alternative<ops::Linear>(op.op->kind);
      if (is_product && matrix_of(op) == of_whole &&
          matrix_of(*there.shards.flow.steps[s].op) == of_shards) {
        return true;
      }
    }
  }
  return false;
}

std::vector<SharedProduct> ReadingOrder::products(bool of_shards, size_t layer, size_t step) const {
  const LayerPair& pair = scope_.layers[layer];
  const Side& side = of_shards ? scope_.shards : scope_.whole;
  const auto& flow = of_shards ? pair.shards.flow : pair.whole.flow;
  std::vector<i64> ranks;
  if (of_shards) {
    std::ranges::set_intersection(scope_.own, pair.shards.devices, std::back_inserter(ranks));
  } else if (scope_.reads_whole) {
    ranks.push_back(0);
  }
  ProductLists lists;
  for (const i64 rank : ranks) {
    lists[rank] = products_of(side, *flow.steps[step].op, rank);
    for (MatrixProduct& product : lists[rank]) product.is_looked_up = is_looked_up(layer, step);
  }
  const mesh::RankGroups groups(side.mesh, ranks, alike_along(*side.weights, tensors_of(lists)));
  std::vector<SharedProduct> all;
  for (const auto& [rank, own] : lists) {
    const std::vector<i64>& group = groups.of(rank);
    if (group.front() != rank) continue;
    for (size_t p = 0; p < own.size(); ++p) {
      SharedProduct& shared = all.emplace_back();
      for (const i64 member : group) shared.push_back(lists.at(member).at(p));
    }
  }
  return all;
}

std::optional<index::Interval> ReadingOrder::looked_up_from(const MatrixProduct& product,
                                                            i64 row) const {
  const index::AxisMap where = index::inverse(product.rows);
  std::optional<i64> first;
  for (const i64 token : scope_.tokens) {
    const auto local = token < where.local_size() ? where(token) : std::nullopt;
    if (local && *local >= row && (!first || *local < *first)) first = local;
  }
  if (!first) return std::nullopt;
  return index::Interval{*first, *first + 1};
}

std::optional<index::Interval> ReadingOrder::rows_from(const MatrixProduct& product,
                                                       i64 row) const {
  if (product.is_looked_up) return looked_up_from(product, row);
  const i64 rows = product.rows.local_size();
  if (row >= rows) return std::nullopt;
  return row_chunk(row, rows, product.row_bytes(), scope_.chunk_bytes);
}

std::optional<ReadRequest> ReadingOrder::next() {
  while (true) {
    if (product_ < products_.size()) {
      const MatrixProduct& product = products_[product_].front();
      if (const auto rows = rows_from(product, row_)) {
        row_ = rows->end;
        return ReadRequest{(of_shards_ ? scope_.shards : scope_.whole).weights,
                           product.stored(*rows), rows->size() * product.row_bytes()};
      }
      ++product_;
      row_ = 0;
    } else if (!next_products()) {
      return std::nullopt;
    }
  }
}

/// Moves to the products of the next step, the whole model's first. Returns false at the end.
bool ReadingOrder::next_products() {
  if (is_begun_ && of_shards_) ++step_;
  of_shards_ = is_begun_ && !of_shards_;
  is_begun_ = true;
  while (layer_ < scope_.stretch.end && step_ >= scope_.layers[layer_].whole.flow.steps.size()) {
    ++layer_;
    step_ = 0;
  }
  if (layer_ >= scope_.stretch.end) return false;
  products_ = products(of_shards_, layer_, step_);
  product_ = 0;
  row_ = 0;
  return true;
}

}  // namespace shardtool::engine
