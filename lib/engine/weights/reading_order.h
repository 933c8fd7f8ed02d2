#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/engine/diagnosis/layer_pair.h"
#include "lib/engine/run/product_list.h"
#include "lib/engine/weights/chunk_stream.h"

namespace shardtool::engine {

/// Products on several devices that multiply by the same bytes, which are read once for all.
using SharedProduct = std::vector<MatrixProduct>;

/// All matrix reads of a validation in the order of their use: for every step the products of the
/// whole model, then those of the shards.
///
/// O1 the reads do not depend on computed values
/// O2 every number of a matrix is read, and once per op that multiplies with it; devices that read
///    the same bytes (WeightSource::alike_along) share one read
/// O3 an embedding table that another op multiplies with as a whole is read only for the tokens:
///    the other product reads all of it, on the same devices and both sides
class ReadingOrder {
 public:
  /// References must outlive this object. `own` are the devices of this process; it reads the whole
  /// model if `reads_whole`. A chunk has at most `chunk_bytes` bytes, or one row.
  struct Scope {
    const std::vector<LayerPair>& layers;
    Stretch stretch;  ///< the layers to read
    const Side& whole;
    const Side& shards;
    const std::vector<i64>& own;
    bool reads_whole = true;
    i64 chunk_bytes = 0;
    const std::vector<i64>& tokens;  ///< indices for table lookups
  };
  explicit ReadingOrder(const Scope& scope);

  /// Returns the products of one step on one side, in order. Those that share a read have equal
  /// matrices on different devices, in the order of ranks.
  std::vector<SharedProduct> products(bool of_shards, size_t layer, size_t step) const;
  /// Returns the rows of a product's matrix to read together from `row` on; for a lookup, from the
  /// next looked-up row. Nullopt at the end.
  std::optional<index::Interval> rows_from(const MatrixProduct& product, i64 row) const;
  /// Returns true if a step looks up rows of a table that another op multiplies with (O3).
  bool is_looked_up(size_t layer, size_t step) const { return looked_up_.contains({layer, step}); }
  /// Returns the next read; nullopt at the end.
  std::optional<ReadRequest> next();

 private:
  bool is_multiplied_elsewhere(size_t layer, size_t step) const;
  std::optional<index::Interval> looked_up_from(const MatrixProduct& product, i64 row) const;
  bool next_products();

  const Scope scope_;
  std::set<std::pair<size_t, size_t>> looked_up_;  ///< layer, step

  bool is_begun_ = false;
  bool of_shards_ = false;
  size_t layer_ = 0;
  size_t step_ = 0;
  std::vector<SharedProduct> products_;
  size_t product_ = 0;
  i64 row_ = 0;
};

}  // namespace shardtool::engine
