#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "lib/base/checked.h"

namespace shardtool::comm {

/// Operations between processes.
enum class Operation {
  kBarrier,
  kSend,
  kReceive,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kAllReduce,
  kReduceScatter,
  kSplit,
};
inline constexpr std::array<std::string_view, 9> kOperationNames{
    "barrier",    "send",       "receive",        "all_gather", "broadcast",
    "all_to_all", "all_reduce", "reduce_scatter", "split"};

constexpr std::string_view name_of(Operation operation) {
  return kOperationNames[static_cast<size_t>(operation)];
}

/// Calls of an operation by one process, and their bytes: those that it sent to or received from
/// one other, gave to a collective, or had after a broadcast.
struct Count {
  i64 calls = 0;
  i64 bytes = 0;

  bool operator==(const Count&) const = default;
};

class Counters {
 public:
  const Count& operator[](Operation operation) const {
    return counts_[static_cast<size_t>(operation)];
  }
  void add(Operation operation, i64 bytes) {
    ++counts_[static_cast<size_t>(operation)].calls;
    add_bytes(operation, bytes);
  }
  /// Adds bytes to a call that was counted before its size was known.
  void add_bytes(Operation operation, i64 bytes) {
    counts_[static_cast<size_t>(operation)].bytes += bytes;
  }

  bool operator==(const Counters&) const = default;

 private:
  std::array<Count, kOperationNames.size()> counts_{};
};

}  // namespace shardtool::comm
