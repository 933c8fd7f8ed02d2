#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <deque>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/device/accelerator.h"
#include "kernels/device/launch.h"

namespace shardtool::kernels {

/// Runs works over host arrays, on the host or on an accelerator. On the host the operands are the
/// arrays themselves; on an accelerator they are copies that finish() copies back. For every
/// computation:
///
///     in, out, in_out   make operands of arrays
///     run               runs works over them
///     finish            waits; arrays given to out and in_out then have the results
///
/// W1 arrays given as operands live until finish(), and the host does not touch them
/// W2 after `cancel` is set, results are undefined
class Workbench {
 public:
  /// Null `accelerator`: runs on the host, where `cancel` ends long works; null `cancel`: never.
  explicit Workbench(Accelerator* accelerator, const std::atomic<bool>* cancel = nullptr)
      : accelerator_(accelerator), cancel_(cancel) {}

  Accelerator* accelerator() const { return accelerator_; }
  /// True if items of a work may run at the same time.
  bool is_parallel() const { return accelerator_ != nullptr; }

  template <class T>
  const T* in(std::span<const T> values) {
    if (accelerator_ == nullptr) return values.data();
    return reinterpret_cast<const T*>(upload(std::as_bytes(values)));
  }
  template <class T>
  const T* in(const std::vector<T>& values) {
    return in(std::span<const T>(values));
  }
  /// The initial content is undefined on an accelerator.
  template <class T>
  T* out(std::span<T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (accelerator_ == nullptr) return values.data();
    return reinterpret_cast<T*>(reserve(std::as_writable_bytes(values)));
  }
  template <class T>
  T* out(std::vector<T>& values) {
    return out(std::span<T>(values));
  }
  template <class T>
  T* in_out(std::span<T> values) {
    T* const there = out(values);
    if (accelerator_ != nullptr) send_last();
    return there;
  }
  template <class T>
  T* in_out(std::vector<T>& values) {
    return in_out(std::span<T>(values));
  }
  /// Scratch memory for n numbers, never copied back. On the host it lives as long as the
  /// workbench.
  template <class T>
  T* room(size_t n) {
    if (n == 0) return nullptr;
    if (accelerator_ != nullptr) return reinterpret_cast<T*>(place(n * sizeof(T)).there);
    return reinterpret_cast<T*>(scratch_.emplace_back(n * sizeof(T)).data());
  }

  template <class Work>
  void run(const Work& work) {
    if (accelerator_ == nullptr) return run_on_host(work, cancel_);
    accelerator_->run(work);
  }

  void finish();

 private:
  /// Blocks are reused by later computations.
  struct Block {
    PairedMemory memory;
    size_t used = 0;
  };
  struct Placed {
    std::byte* here = nullptr;
    std::byte* there = nullptr;
  };
  struct Result {
    Placed placed;
    std::span<std::byte> values;
  };

  Placed place(size_t bytes);
  const std::byte* upload(std::span<const std::byte> values);
  std::byte* reserve(std::span<std::byte> values);
  void send_last();

  Accelerator* accelerator_;
  const std::atomic<bool>* cancel_;
  std::vector<Block> blocks_;
  std::vector<Result> results_;
  std::deque<std::vector<std::byte>> scratch_;
};

}  // namespace shardtool::kernels
