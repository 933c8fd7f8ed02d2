#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/engine/diagnosis/layer_pair.h"
#include "lib/engine/run/product_list.h"
#include "lib/engine/weights/chunk_stream.h"

namespace shardtool::engine {

/// Everything that a validation reads of matrices, in the order in which it is needed: of every
/// step the products of the whole model, then those of the shards.
///
/// O1 what is read does not depend on what is computed
/// O2 every number of a matrix is read, and once where one op multiplies with it
/// O3 a table of words that is multiplied with whole elsewhere is looked up by the tokens alone:
///    the other product reads all of it, on the same devices and both sides
class ReadingOrder {
 public:
  /// What is referred to outlives this. `own` are the devices of this process; it reads the whole
  /// model where `reads_whole`. A chunk has at most `chunk_bytes` bytes, or one row.
  struct Scope {
    const std::vector<LayerPair>& layers;
    const Side& whole;
    const Side& shards;
    const std::vector<i64>& own;
    bool reads_whole = true;
    i64 chunk_bytes = 0;
    const std::vector<i64>& tokens;  ///< that tables are looked up by
  };
  explicit ReadingOrder(const Scope& scope);

  /// The products of one step on one side, in order.
  std::vector<Product> products(bool of_shards, size_t layer, size_t step) const;
  /// The rows of a product's matrix that are read together from `row` on, or where it is looked up
  /// after it; nothing at the end.
  std::optional<index::Interval> rows_from(const Product& product, i64 row) const;
  /// What is read next; nothing at the end.
  std::optional<ReadRequest> next();

 private:
  bool is_multiplied_elsewhere(size_t layer, size_t step) const;
  std::optional<index::Interval> looked_up_from(const Product& product, i64 row) const;
  bool next_products();

  const Scope scope_;
  std::set<std::pair<size_t, size_t>> looked_up_;  ///< layer, step

  bool is_begun_ = false;
  bool of_shards_ = false;
  size_t layer_ = 0;
  size_t step_ = 0;
  std::vector<Product> products_;
  size_t product_ = 0;
  i64 row_ = 0;
};

}  // namespace shardtool::engine
