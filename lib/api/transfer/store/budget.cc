#include "lib/api/transfer/store/budget.h"

#include <algorithm>

#include "lib/store/s3/parted_output.h"

namespace shardtool::api {
namespace {

constexpr i64 kMostPartBytes = 16 << 20;
constexpr i64 kPartStep = 1 << 20;
/// Threads of a run that reads files of this machine: each sends what it completes.
constexpr int kSendingThreads = 8;

}  // namespace

i64 memory_of_parts(const exec::Resources& resources) {
  return resources.store_memory / 2;
}

exec::Resources resources_of_moves(const exec::Resources& resources, bool reads_store) {
  exec::Resources moves = resources;
  moves.store_memory = resources.store_memory - memory_of_parts(resources);
  moves.max_memory = moves.store_memory;
  if (!reads_store && moves.threads == 0) moves.threads = kSendingThreads;
  return moves;
}

i64 part_bytes_for(size_t files, const exec::Resources& resources) {
  const i64 at_once = static_cast<i64>(files) + kSendingThreads;
  const i64 bytes = memory_of_parts(resources) / at_once / kPartStep * kPartStep;
  return std::clamp(bytes, store::s3::kLeastPartBytes, kMostPartBytes);
}

}  // namespace shardtool::api
