#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/device/accelerator.h"

namespace shardtool::kernels {

/// Memory on an accelerator, and the host memory of copies to and from it. Operations run in the
/// order in which they are queued. So memory that is given up is handed out again at once: what
/// was queued before comes first. Callers wait only for what they read.
class DeviceMemory : public std::enable_shared_from_this<DeviceMemory> {
 public:
  /// Memory on the accelerator, given up by the destructor.
  class Block {
   public:
    Block(std::shared_ptr<DeviceMemory> owner, std::byte* there, size_t bytes)
        : owner_(std::move(owner)), there_(there), bytes_(bytes) {}
    ~Block() { owner_->give_up(there_, bytes_); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    std::byte* there() const { return there_; }
    DeviceMemory& owner() const { return *owner_; }

   private:
    std::shared_ptr<DeviceMemory> owner_;
    std::byte* there_;
    size_t bytes_;
  };

  static constexpr size_t kStagingBytes = size_t{1} << 20;

  /// `accelerator` must outlive this and its blocks. Copies use `staging` bytes of host memory; an
  /// array that needs more than a quarter of it takes as much as it needs.
  explicit DeviceMemory(Accelerator& accelerator, size_t staging = kStagingBytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  Accelerator& accelerator() const { return accelerator_; }
  /// Returns a block of this size with any content; null for 0 bytes. Throws kDeviceFailed.
  std::shared_ptr<Block> take(size_t bytes);
  /// Queues a copy of `from`, which may change after the call.
  void upload(const std::byte* from, size_t bytes, std::byte* there);
  /// Copies to `to` after all operations queued so far, and waits for that.
  void download(const std::byte* there, size_t bytes, std::byte* to);
  /// Number of times that download() has waited.
  i64 waits() const { return waits_; }

 private:
  /// Host memory of copies, filled from the front.
  struct Staging {
    std::byte* here = nullptr;
    size_t bytes = 0;
    size_t used = 0;
    Accelerator::Ticket done = 0;  ///< end of the copies that use it
  };

  std::byte* stage(size_t bytes);
  void give_up(std::byte* there, size_t bytes) noexcept;

  Accelerator& accelerator_;
  const size_t staging_bytes_;               ///< of each of `staging_`
  std::multimap<size_t, std::byte*> spare_;  ///< by size
  size_t spare_bytes_ = 0;
  std::vector<Staging> staging_;
  size_t current_ = 0;
  i64 waits_ = 0;
};

}  // namespace shardtool::kernels
