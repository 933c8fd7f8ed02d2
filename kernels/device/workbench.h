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

/// Runs works over arrays of the host, wherever it computes: on the host itself, where operands are
/// the arrays, or on an accelerator, where they are copies that come back in finish(). Of every
/// computation
///
///     in, out, in_out   operands
///     run               works over them
///     finish            waits; what out and in_out named has the results
///
/// W1 arrays that operands stand for live until finish(), and the host leaves them alone
/// W2 once the flag is up, what works write is not known
class Workbench {
 public:
  /// Null: on the host. The flag ends what takes long there; null: nothing does.
  explicit Workbench(Accelerator* accelerator, const std::atomic<bool>* cancel = nullptr)
      : accelerator_(accelerator), cancel_(cancel) {}

  Accelerator* accelerator() const { return accelerator_; }
  /// Whether items of a work may run at the same time.
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
  /// What it holds before a work writes it is not known on an accelerator.
  template <class T>
  T* out(std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (accelerator_ == nullptr) return values.data();
    return reinterpret_cast<T*>(reserve(std::as_writable_bytes(std::span(values))));
  }
  template <class T>
  T* in_out(std::vector<T>& values) {
    T* const there = out(values);
    if (accelerator_ != nullptr) send_last();
    return there;
  }
  /// Room for n numbers that nobody sees afterwards. On the host it lives as long, too.
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
  /// Blocks are kept from one computation to the next.
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
