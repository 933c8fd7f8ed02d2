#include "kernels/device/device_memory.h"

#include <algorithm>
#include <cstring>

namespace shardtool::kernels {
namespace {

/// Alignment of memory that GPUs allocate.
constexpr size_t kAlignment = 256;
/// Memory that was given up and is kept for later blocks; more is released.
constexpr size_t kMostSpareBytes = size_t{16} << 20;
/// One is filled while copies of the others are under way.
constexpr size_t kStagings = 4;

size_t rounded(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

DeviceMemory::DeviceMemory(Accelerator& accelerator, size_t staging)
    : accelerator_(accelerator), staging_bytes_(staging / kStagings), staging_(kStagings) {}

DeviceMemory::~DeviceMemory() {
  for (const auto& [bytes, there] : spare_) accelerator_.release(there);
  for (const Staging& staging : staging_) {
    if (staging.here != nullptr) accelerator_.release_host(staging.here);
  }
}

std::shared_ptr<DeviceMemory::Block> DeviceMemory::take(size_t bytes) {
  if (bytes == 0) return nullptr;
  const size_t wanted = rounded(bytes);
  const auto found = spare_.lower_bound(wanted);
  // A block of more than twice the size is kept for values of its own size.
  if (found == spare_.end() || found->first > 2 * wanted) {
    return std::make_shared<Block>(shared_from_this(), accelerator_.allocate(wanted), wanted);
  }
  const auto [size, there] = *found;
  spare_.erase(found);
  spare_bytes_ -= size;
  return std::make_shared<Block>(shared_from_this(), there, size);
}

void DeviceMemory::give_up(std::byte* there, size_t bytes) noexcept {
  if (spare_bytes_ + bytes > kMostSpareBytes) return accelerator_.release(there);
  spare_.emplace(bytes, there);
  spare_bytes_ += bytes;
}

std::byte* DeviceMemory::stage(size_t bytes) {
  const size_t wanted = rounded(bytes);
  Staging* staging = &staging_[current_];
  if (staging->bytes - staging->used < wanted) {
    staging->done = accelerator_.ticket();
    current_ = (current_ + 1) % kStagings;
    staging = &staging_[current_];
    accelerator_.wait(staging->done);
    staging->used = 0;
  }
  if (staging->bytes < wanted) {
    if (staging->here != nullptr) accelerator_.release_host(staging->here);
    *staging = {};
    const size_t enough = std::max(wanted, staging_bytes_);
    staging->here = accelerator_.allocate_host(enough);
    staging->bytes = enough;
  }
  std::byte* const here = staging->here + staging->used;
  staging->used += wanted;
  return here;
}

void DeviceMemory::upload(const std::byte* from, size_t bytes, std::byte* there) {
  if (bytes == 0) return;
  std::byte* const here = stage(bytes);
  std::memcpy(here, from, bytes);
  accelerator_.upload(here, bytes, there);
}

void DeviceMemory::download(const std::byte* there, size_t bytes, std::byte* to) {
  if (bytes == 0) return;
  std::byte* const here = stage(bytes);
  accelerator_.download(there, bytes, here);
  accelerator_.wait(accelerator_.ticket());
  ++waits_;
  std::memcpy(to, here, bytes);
}

}  // namespace shardtool::kernels
