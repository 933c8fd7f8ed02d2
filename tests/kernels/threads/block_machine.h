#pragma once

#include "tests/kernels/machine.h"
#include "tests/kernels/threads/block_on_host.h"

// After the names of CUDA that it needs.
#include "kernels/product/product_launch.cuh"

namespace shardtool::kernels {

/// Runs kernels whose threads work together on the host.
class BlockMachine : public HostMachine {
 public:
  template <class T>
  void multiply_rows(const StoredMatrix& w, NumberMap map, RowView<const T> x, RowView<T> y) {
    gpu_on_host::multiply_rows_in_blocks(w, map, x, y, nullptr);
  }
  template <class T>
  void multiply_rows(const StoredMatrix& w, RowView<const T> x, RowView<T> y) {
    gpu_on_host::multiply_rows_in_blocks(w, NumberMap::kBits, x, y, nullptr);
  }
  template <class T>
  void add_columns(const StoredMatrix& w, NumberMap map, RowView<const T> x, RowView<T> y) {
    gpu_on_host::add_columns_in_blocks(w, map, x, y, nullptr);
  }
  template <class T>
  void add_columns(const StoredMatrix& w, RowView<const T> x, RowView<T> y) {
    gpu_on_host::add_columns_in_blocks(w, NumberMap::kBits, x, y, nullptr);
  }
};

}  // namespace shardtool::kernels
