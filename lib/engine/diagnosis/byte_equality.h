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

/// Whether every device stores the bytes of the whole model, by bytes that pass anyway: of every
/// part, and of what the whole model has in its place, a digest that is linear in the placed bytes
/// (Crc64), so that neither order nor size of the chunks matters. Padding does not count; tensors
/// that the whole model lacks, or has in another shape or dtype, are left aside.
class ByteEquality {
 public:
  ByteEquality(const Side& whole, const Side& shards) : whole_(whole), shards_(shards) {}

  /// Rows [begin, end) of a product's matrix on one side; every row once.
  void add(bool of_shards, const Product& product, i64 begin, i64 end,
           std::span<const std::byte> bytes);
  /// All that a device has of a tensor; a second time it is left out.
  void add_all(bool of_shards, size_t tensor, i64 rank, std::span<const std::byte> bytes);

  /// Of the parts of this process. Every process calls it; the first has the whole model's digests.
  ComparedBytes result(Fabric& fabric);

 private:
  /// What the shards' devices have of a tensor: devices with the same part share it.
  struct Places {
    std::vector<StoredPart> parts;
    std::vector<std::uint64_t> whole_digests;  ///< by part
    std::map<i64, size_t> of_rank;             ///< the part that a device has
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
