#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <span>
#include <vector>

#include "lib/engine/weights/weight_source.h"

namespace shardtool::api {

/// The bytes of the rows that were read last, so that devices that read the same small weight one
/// after the other share one read. Bounded in number and bytes. May be used by several threads.
class KeptRows {
 public:
  /// Fills `bytes` with kept rows. Returns false if they are not kept.
  bool find(const engine::StoredRows& rows, std::span<std::byte> bytes);
  /// Keeps rows in place of the oldest ones; ignores those that are too large.
  void keep(const engine::StoredRows& rows, std::span<const std::byte> bytes);

 private:
  struct Kept {
    engine::StoredRows rows;
    std::vector<std::byte> bytes;
  };

  std::mutex mutex_;
  std::list<Kept> kept_;  ///< the newest first
  i64 bytes_ = 0;         ///< of all
};

}  // namespace shardtool::api
