#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "kernels/device/accelerator.h"
#include "tests/kernels/machine.h"

namespace shardtool::kernels {

/// Runs works on Open::accelerator(), whose floats may differ from the CPU's by Open::kRoundings in
/// ops with exponentials.
template <class Open>
class AcceleratorMachine {
 public:
  static constexpr double kRoundings = Open::kRoundings;

  template <class T>
  T* put(const std::vector<T>& values) {
    PairedMemory memory(accelerator_, std::max<size_t>(1, values.size() * sizeof(T)));
    if (!values.empty()) {
      std::memcpy(memory.here(), values.data(), values.size() * sizeof(T));
      accelerator_.upload(memory.here(), values.size() * sizeof(T), memory.there());
    }
    T* data = reinterpret_cast<T*>(memory.there());
    memory_.emplace(data, std::move(memory));
    return data;
  }
  template <class T>
  T* poisoned(size_t n) {
    return reinterpret_cast<T*>(put(std::vector<std::byte>(n * sizeof(T), kPoison)));
  }
  template <class T>
  std::vector<T> get(const T* data, size_t n) {
    std::vector<T> values(n);
    if (n == 0) return values;
    const PairedMemory& memory = memory_.at(data);
    accelerator_.download(memory.there(), n * sizeof(T), memory.here());
    accelerator_.wait(accelerator_.ticket());
    std::memcpy(static_cast<void*>(values.data()), memory.here(), n * sizeof(T));
    return values;
  }

  template <class Work>
  void run(const Work& work) {
    accelerator_.run(work);
  }
  void strided_copy(const index::StridedCopy& copy, const std::byte* src, std::byte* dst) {
    run(BoxCopy{copy, src, dst});
  }
  void multiply_rows(const StoredMatrix& w, NumberMap map, RowView<const Field> x,
                     RowView<Field> y) {
    run(RowProducts<Field>{w, map, x, y});
  }
  template <class T>
  void multiply_rows(const StoredMatrix& w, RowView<const T> x, RowView<T> y) {
    run(RowProducts<T>{w, NumberMap::kBits, x, y});
  }
  void add_columns(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y) {
    run(ColumnProducts<Field>{w, map, x, y});
  }
  template <class T>
  void add_columns(const StoredMatrix& w, RowView<const T> x, RowView<T> y) {
    run(ColumnProducts<T>{w, NumberMap::kBits, x, y});
  }
  template <class T>
  void compare(const CompareRows<T>& rows, Disagreement* found) {
    run(Comparison<T>{rows, found});
  }

 private:
  Accelerator& accelerator_ = Open::accelerator();
  std::map<const void*, PairedMemory> memory_;
};

}  // namespace shardtool::kernels
