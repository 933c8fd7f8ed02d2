#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/device/accelerator.h"
#include "kernels/device/array.h"
#include "kernels/device/launch.h"

namespace shardtool::kernels {

/// Runs works over arrays, on the host or on an accelerator. On the host the operands are the
/// arrays themselves; on an accelerator they are there, and arrays of the class Array stay there.
/// For every computation:
///
///     in, out, in_out   make operands of arrays
///     run               runs works over them
///     finish            ends it: spans given to out and in_out have the results, which is waited
///                       for; with Arrays alone nothing is
///
/// W1 spans given as operands live until finish(), and the host does not touch them
/// W2 after `cancel` is set, results are undefined
class Workbench {
 public:
  /// Null `accelerator`: runs on the host, where `cancel` ends long works; null `cancel`: never.
  explicit Workbench(Accelerator* accelerator = nullptr, const std::atomic<bool>* cancel = nullptr);
  /// Runs on the accelerator of `memory`, which several workbenches share; null: on the host.
  explicit Workbench(std::shared_ptr<DeviceMemory> memory,
                     const std::atomic<bool>* cancel = nullptr);

  Accelerator* accelerator() const { return accelerator_; }
  /// True if items of a work may run at the same time.
  bool is_parallel() const { return accelerator_ != nullptr; }

  /// An array that is not on the accelerator yet is copied there, and stays on both sides. From
  /// another accelerator it moves through the host, which waits.
  template <class T>
  const T* in(const Array<T>& numbers) {
    if (accelerator_ == nullptr) return numbers.data();
    if (numbers.is_there() && &numbers.there_->owner().accelerator() != accelerator_) {
      numbers.fetch();
      numbers.there_.reset();
    }
    if (numbers.there_ == nullptr) {
      numbers.there_ = memory_->take(numbers.size() * sizeof(T));
      copy_there(std::as_bytes(std::span(numbers.values())), numbers.there_);
    }
    return address<T>(numbers.there_);
  }
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
  T* out(Array<T>& numbers) {
    if (accelerator_ == nullptr) return numbers.data();
    numbers.there_ = memory_->take(numbers.size() * sizeof(T));
    return only_there(numbers);
  }
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
  T* in_out(Array<T>& numbers) {
    if (accelerator_ == nullptr) return numbers.data();
    in(numbers);
    if (numbers.there_ != nullptr && numbers.there_.use_count() > 1) {
      numbers.there_ = copied(*numbers.there_, numbers.size() * sizeof(T));
    }
    return only_there(numbers);
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
  /// As in_out, for an array that has only zeros.
  template <class T>
  T* zeros(Array<T>& numbers) {
    T* const there = out(numbers);
    if (accelerator_ != nullptr) clear(numbers.there_, numbers.size() * sizeof(T));
    return there;
  }
  /// Scratch memory for n numbers until finish(), never copied back. On the host it lives as long
  /// as the workbench.
  template <class T>
  T* room(size_t n) {
    if (n == 0) return nullptr;
    if (accelerator_ != nullptr) return reinterpret_cast<T*>(temporary(n * sizeof(T)));
    return reinterpret_cast<T*>(scratch_.emplace_back(n * sizeof(T)).data());
  }

  template <class Work>
  void run(const Work& work) {
    if (accelerator_ == nullptr) return run_on_host(work, cancel_);
    accelerator_->run(work);
  }

  void finish();
  /// Number of times that the host has waited for arrays; 0 without an accelerator.
  i64 waits() const { return memory_ == nullptr ? 0 : memory_->waits(); }

 private:
  using Block = DeviceMemory::Block;
  struct Result {
    std::shared_ptr<Block> there;
    std::span<std::byte> values;
  };

  template <class T>
  static T* address(const std::shared_ptr<Block>& block) {
    return block == nullptr ? nullptr : reinterpret_cast<T*>(block->there());
  }
  template <class T>
  static T* only_there(Array<T>& numbers) {
    // An array without numbers has no memory there.
    numbers.is_here_ = numbers.there_ == nullptr;
    numbers.here_.reset();
    return address<T>(numbers.there_);
  }
  void copy_there(std::span<const std::byte> values, const std::shared_ptr<Block>& block);
  std::shared_ptr<Block> copied(const Block& block, size_t bytes);
  void clear(const std::shared_ptr<Block>& block, size_t bytes);
  std::byte* temporary(size_t bytes);
  const std::byte* upload(std::span<const std::byte> values);
  std::byte* reserve(std::span<std::byte> values);
  void send_last();

  Accelerator* accelerator_;
  const std::atomic<bool>* cancel_;
  std::shared_ptr<DeviceMemory> memory_;           ///< null on the host
  std::vector<std::shared_ptr<Block>> temporary_;  ///< until finish()
  std::vector<Result> results_;
  std::deque<std::vector<std::byte>> scratch_;
};

}  // namespace shardtool::kernels
