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

/// The hashes that a manifest records, by tensor of the shards. The whole side numbers its tensors
/// alike: it is the shards, merged.
struct RecordedHashes {
  /// XXH3-128 of the bytes that a rank stores; nothing where they do not pass as they are stored.
  std::function<std::optional<kernels::Hash128>(size_t tensor, i64 rank)> of_part;
  /// Crc64 of the whole tensor; nothing where none is recorded.
  std::function<std::optional<std::uint64_t>(size_t tensor)> of_whole;
  size_t tensors = 0;  ///< those behind them are made of others
};

/// Holds the bytes that pass through a validation against a manifest's hashes, so that no byte is
/// read for it again. XXH3-128 needs a part front to back: products stream it so, except where
/// an op wants only some rows, or wants them in another order. Those parts are told as unread.
class RecordedByteCheck {
 public:
  RecordedByteCheck(const Side& whole, const Side& shards, const RecordedHashes& recorded)
      : whole_(whole), shards_(shards), recorded_(recorded) {}

  /// Rows [begin, end) of a product's matrix on one side.
  void add(bool of_shards, const Product& product, i64 begin, i64 end,
           std::span<const std::byte> bytes);
  /// Everything that a device has of a tensor.
  void add_all(bool of_shards, size_t tensor, i64 rank, std::span<const std::byte> bytes);

  /// About the parts of these ranks, and about whole tensors where `reads_whole`.
  RecordedBytes result(std::span<const i64> ranks, bool reads_whole) const;

 private:
  struct Stream {
    i64 bytes = 0;  ///< in all
    i64 next = 0;   ///< byte that is to come
    bool is_broken = false;
    std::optional<kernels::Xxh3> running;  ///< of a part that has begun and not ended
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

/// Joins the findings of all processes, each about other parts. Throws what all_gather throws.
RecordedBytes merged(const RecordedBytes& mine, comm::Communicator& comm);

}  // namespace shardtool::engine
