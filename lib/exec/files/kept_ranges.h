#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "lib/base/checked.h"
#include "lib/exec/move.h"

namespace shardtool::exec {

/// Byte ranges of files that were read once and are wanted again. They are small and many, and an
/// object store would get a request for each of them. One thread at a time may change this.
class KeptRanges {
 public:
  using Bytes = std::vector<std::byte>;

  /// Allows so many bytes, those of the table included. None are allowed at first.
  void allow(i64 bytes) { left_ = bytes; }
  /// Takes room for so many bytes. Returns false if too little is left.
  bool reserve(i64 bytes);
  /// Keeps bytes for which there is room.
  void keep(const Slot& slot, Bytes bytes);
  /// Returns the bytes at a place; null if they, or so many of them, are not kept.
  const Bytes* find(const Slot& slot, i64 bytes) const;

 private:
  i64 left_ = 0;
  std::map<std::pair<int, i64>, Bytes> by_place_;
};

}  // namespace shardtool::exec
