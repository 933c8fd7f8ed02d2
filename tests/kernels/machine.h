#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <vector>

#include "kernels/compare/compare.h"
#include "kernels/device/launch.h"
#include "kernels/product/product.h"
#include "kernels/strided_copy/unit_copy.h"

namespace shardtool::kernels {

/// Initial bytes of the outputs of works.
inline constexpr auto kPoison = std::byte{0xa5};

/// Runs works on the host, one thread after another, and products as the CPU does. The laws of
/// machine_test.h apply to it and to a GPU.
class HostMachine {
 public:
  /// Tolerance in roundings. Add, multiply, divide and square root give the CPU's bits on every
  /// machine; exp, tanh and erf of a GPU differ by a few roundings.
  static constexpr double kRoundings = 0;

  template <class T>
  T* put(const std::vector<T>& values) {
    T* data = poisoned<T>(values.size());
    if (!values.empty())
      std::memcpy(static_cast<void*>(data), values.data(), values.size() * sizeof(T));
    return data;
  }
  template <class T>
  T* poisoned(size_t n) {
    return reinterpret_cast<T*>(buffers_.emplace_back(n * sizeof(T) + 1, kPoison).data());
  }
  template <class T>
  std::vector<T> get(const T* data, size_t n) {
    return {data, data + n};
  }

  template <class Work>
  void run(const Work& work) {
    run_on_host(work);
  }
  void strided_copy(const index::StridedCopy& copy, const std::byte* src, std::byte* dst) {
    switch (copy.run == 0 ? 1 : unit_of(copy, src, dst)) {
      case 16:
        return run(*unit_copy<16>(copy, src, dst));
      case 8:
        return run(*unit_copy<8>(copy, src, dst));
      case 4:
        return run(*unit_copy<4>(copy, src, dst));
      case 2:
        return run(*unit_copy<2>(copy, src, dst));
      default:
        return run(*unit_copy<1>(copy, src, dst));
    }
  }
  void multiply_rows(const StoredMatrix& w, NumberMap map, RowView<const Field> x,
                     RowView<Field> y) {
    kernels::multiply_rows(w, map, x, y);
  }
  template <class T>
  void multiply_rows(const StoredMatrix& w, RowView<const T> x, RowView<T> y) {
    kernels::multiply_rows(w, x, y);
  }
  void add_columns(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y) {
    kernels::add_columns(w, map, x, y);
  }
  template <class T>
  void add_columns(const StoredMatrix& w, RowView<const T> x, RowView<T> y) {
    kernels::add_columns(w, x, y);
  }
  template <class T>
  void compare(const CompareRows<T>& rows, Disagreement* found) {
    constexpr i64 kThreads = 3;
    for (i64 thread = kThreads; thread-- > 0;) {
      Disagreement own;
      for (i64 i = thread; i < rows.count(); i += kThreads) rows.look(i, own);
      found->join(own);
    }
  }

 private:
  std::deque<std::vector<std::byte>> buffers_;
};

}  // namespace shardtool::kernels
