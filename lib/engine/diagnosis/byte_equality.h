#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/engine/diagnosis/verdict.h"
#include "lib/engine/run/fabric.h"
#include "lib/engine/run/product_list.h"
#include "lib/engine/weights/stored_part.h"

namespace shardtool::engine {

/// Checks that every device stores the bytes of the whole model, using bytes that are read anyway.
/// For every part and its counterpart in the whole model it computes a digest that is linear in the
/// placed bytes (Crc64), so order and size of the chunks do not matter. Padding is ignored, as are
/// parts that a device gathers from others, and tensors that the whole model lacks or has with
/// another shape or dtype.
class ByteEquality {
 public:
  ByteEquality(const Side& whole, const Side& shards) : whole_(whole), shards_(shards) {}

  /// Adds rows [begin, end) of a product's matrix on one side; every row must be added once.
  void add(bool of_shards, const MatrixProduct& product, i64 begin, i64 end,
           std::span<const std::byte> bytes);
  /// Adds a device's whole part of a tensor; repeated calls are ignored.
  void add_all(bool of_shards, size_t tensor, i64 rank, std::span<const std::byte> bytes);

  /// Compares this process' parts of the `judged` tensors. Every process calls it; the first one
  /// has the whole model's digests.
  ComparedBytes result(Fabric& fabric, const std::set<size_t>& judged);

 private:
  /// Distinct parts of a tensor among the shards' devices; devices with equal parts share one.
  struct Places {
    std::vector<StoredPart> parts;
    std::vector<std::uint64_t> whole_digests;  ///< by part
    std::map<i64, size_t> of_rank;             ///< index of a device's part
  };

  Places& places_of(size_t tensor);
  void add_rows(bool of_shards, size_t tensor, i64 rank, i64 outer, i64 begin, i64 end,
                std::span<const std::byte> bytes);
  void add_lines(bool of_shards, size_t tensor, i64 rank, i64 begin, i64 end,
                 std::span<const std::byte> bytes);
  void share_whole_digests(Fabric& fabric);

  const Side& whole_;
  const Side& shards_;
  std::map<size_t, Places> places_;                          ///< by the shards' tensor
  std::map<std::pair<size_t, i64>, std::uint64_t> digests_;  ///< by the shards' tensor and rank
  std::set<std::tuple<bool, size_t, i64>> added_;            ///< by add_all
};

}  // namespace shardtool::engine
