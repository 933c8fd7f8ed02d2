#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/device/device_memory.h"

namespace shardtool::kernels {

class Workbench;

/// An array that works on an accelerator write and read without going through the host. It is on
/// the host, on the accelerator, or on both with the same content; reading it on the host fetches
/// it, which waits, and writing it there gives up the accelerator's copy. A copy of the array
/// shares the memory of both until one of the two is written, so that equal values of many devices
/// need the memory of one.
///
/// Like a vector, it is used by one thread at a time, or read by several while it is on the host.
/// An address for writing is good until the array is copied.
template <class T>
class Array {
 public:
  Array() = default;
  /// Zeros, on the host.
  explicit Array(size_t n) : Array(std::vector<T>(n)) {}
  Array(std::vector<T> values)
      : size_(values.size()), here_(std::make_shared<std::vector<T>>(std::move(values))) {}
  template <class Iterator>
  Array(Iterator first, Iterator last) : Array(std::vector<T>(first, last)) {}

  size_t size() const { return size_; }
  bool is_here() const { return is_here_; }
  bool is_there() const { return there_ != nullptr; }
  /// True if both are the same memory of the host.
  bool shares_with(const Array& other) const { return here_ != nullptr && here_ == other.here_; }

  const std::vector<T>& values() const& {
    fetch();
    return here_ == nullptr ? none() : *here_;
  }
  std::vector<T> values() && { return std::move(writable()); }
  const T* data() const { return values().data(); }
  T* data() { return writable().data(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& operator[](size_t i) { return data()[i]; }
  void resize(size_t n) {
    writable().resize(n);
    size_ = n;
  }

  bool operator==(const Array& other) const { return values() == other.values(); }

 private:
  friend class Workbench;

  static const std::vector<T>& none() {
    static const std::vector<T> kNone;
    return kNone;
  }
  std::vector<T>& writable() {
    fetch();
    if (there_ != nullptr) there_.reset();
    if (here_ == nullptr) here_ = std::make_shared<std::vector<T>>();
    if (here_.use_count() > 1) here_ = std::make_shared<std::vector<T>>(*here_);
    return *here_;
  }
  void fetch() const {
    if (is_here_) return;
    here_ = std::make_shared<std::vector<T>>(size_);
    there_->owner().download(there_->there(), size_ * sizeof(T),
                             reinterpret_cast<std::byte*>(here_->data()));
    is_here_ = true;
  }

  size_t size_ = 0;
  // Reading on the host fetches the content. Null: no numbers, or not on the host.
  mutable std::shared_ptr<std::vector<T>> here_;
  mutable bool is_here_ = true;
  mutable std::shared_ptr<DeviceMemory::Block> there_;
};

}  // namespace shardtool::kernels
