#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/comm/communicator.h"
#include "lib/engine/diagnosis/verdict.h"
#include "lib/engine/run/product_list.h"

namespace shardtool::engine {

/// Hashes in a manifest, by tensor of the shards. The whole side, the merged shards, has the same
/// tensor numbers.
struct RecordedHashes {
  /// XXH3-128 of a rank's stored bytes; nullopt if they are not read in stored form.
  std::function<std::optional<kernels::Hash128>(size_t tensor, i64 rank)> of_part;
  /// Crc64 of the whole tensor; nullopt if it has no record.
  std::function<std::optional<std::uint64_t>(size_t tensor)> of_whole;
  size_t tensors = 0;  ///< number of stored tensors; later ones are derived
};

/// Compares the bytes that a validation reads with a manifest's hashes, without reading them again.
/// XXH3-128 needs a part front to back. Products stream it that way, except for ops that read only
/// some rows or another order; those parts are reported as unread.
class RecordedByteCheck {
 public:
  RecordedByteCheck(const Side& whole, const Side& shards, const RecordedHashes& recorded)
      : whole_(whole), shards_(shards), recorded_(recorded) {}

  /// Adds rows [begin, end) of a product's matrix on one side.
  void add(bool of_shards, const MatrixProduct& product, i64 begin, i64 end,
           std::span<const std::byte> bytes);
  /// Adds a device's whole part of a tensor.
  void add_all(bool of_shards, size_t tensor, i64 rank, std::span<const std::byte> bytes);

  /// Returns the result for the parts that these ranks have of the `judged` tensors, and for the
  /// tensors as a whole if `reads_whole`.
  RecordedBytes result(std::span<const i64> ranks, bool reads_whole,
                       const std::set<size_t>& judged) const;

 private:
  struct Stream {
    i64 bytes = 0;  ///< total size
    i64 next = 0;   ///< offset of the next byte
    bool is_broken = false;
    std::optional<kernels::Xxh3> running;  ///< for a part that has begun and not ended
    kernels::Hash128 xxh3 = {};
    std::uint64_t crc64 = 0;

    bool is_complete() const { return !is_broken && next == bytes; }
  };
  using Key = std::tuple<bool, size_t, i64>;  ///< of the shards, tensor, rank

  void add_at(const Key& key, i64 offset, std::span<const std::byte> bytes);
  const Stream* complete(const Key& key) const;
  void hold_part(size_t tensor, i64 rank, RecordedBytes& result) const;
  void hold_whole(size_t tensor, RecordedBytes& result) const;

  const Side& whole_;
  const Side& shards_;
  const RecordedHashes& recorded_;
  std::map<Key, Stream> streams_;
};

/// Joins the results of all processes, each for its own parts. Throws the errors of all_gather.
RecordedBytes merged(const RecordedBytes& mine, comm::Communicator& comm);

}  // namespace shardtool::engine
