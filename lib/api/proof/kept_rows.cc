#include "lib/api/proof/kept_rows.h"

#include <algorithm>

namespace shardtool::api {
namespace {

/// An op reads a few small weights per device; those with scales per block are the largest.
constexpr size_t kMostKept = 32;
constexpr i64 kMostKeptBytes = 4 << 20;

}  // namespace

bool KeptRows::find(const engine::StoredRows& rows, std::span<std::byte> bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found =
      std::ranges::find_if(kept_, [&](const Kept& kept) { return kept.rows == rows; });
  if (found == kept_.end()) return false;
  std::ranges::copy(found->bytes, bytes.begin());
  return true;
}

void KeptRows::keep(const engine::StoredRows& rows, std::span<const std::byte> bytes) {
  if (std::ssize(bytes) > kMostKeptBytes) return;
  const std::scoped_lock lock(mutex_);
  kept_.push_front({rows, {bytes.begin(), bytes.end()}});
  bytes_ += std::ssize(bytes);
  while (kept_.size() > kMostKept || bytes_ > kMostKeptBytes) {
    bytes_ -= std::ssize(kept_.back().bytes);
    kept_.pop_back();
  }
}

}  // namespace shardtool::api
