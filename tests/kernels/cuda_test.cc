#include <cstdio>
#include <map>
#include <memory>

#include "shardtool/base/error.h"
#include "shardtool/kernels/compare/compare_cuda.h"
#include "shardtool/kernels/device/device.h"
#include "shardtool/kernels/product/product_cuda.h"
#include "shardtool/kernels/strided_copy/strided_copy_cuda.h"
#include "tests/kernels/machine_test.h"

namespace shardtool::kernels {
namespace {

/// Runs works on the GPU.
class DeviceMachine {
 public:
  /// CUDA documents at most a few units in the last place for exp, tanh, erf and log1p.
  static constexpr double kRoundings = 64;

  template <class T>
  T* put(const std::vector<T>& values) {
    auto memory =
        std::make_unique<gpu::DeviceMemory>(std::max<size_t>(1, values.size()) * sizeof(T));
    if (!values.empty()) {
      std::vector<std::byte> bytes(memory->size());
      std::memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
      memory->upload(bytes.data());
    }
    T* data = memory->template as<T>();
    memory_[data] = std::move(memory);
    return data;
  }
  template <class T>
  T* poisoned(size_t n) {
    return reinterpret_cast<T*>(put(std::vector<std::byte>(n * sizeof(T), kPoison)));
  }
  template <class T>
  std::vector<T> get(const T* data, size_t n) {
    const gpu::DeviceMemory& memory = *memory_.at(data);
    std::vector<std::byte> bytes(memory.size());
    memory.download(bytes.data());
    std::vector<T> values(n);
    if (n > 0) std::memcpy(static_cast<void*>(values.data()), bytes.data(), n * sizeof(T));
    return values;
  }

  template <class Work>
  void run(const Work& work) {
    gpu::run(work, nullptr);
  }
  void strided_copy(const index::StridedCopy& copy, const std::byte* src, std::byte* dst) {
    gpu::strided_copy(copy, src, dst, nullptr);
  }
  void multiply_rows(const StoredMatrix& w, NumberMap map, RowView<const Field> x,
                     RowView<Field> y) {
    gpu::multiply_rows(w, map, x, y, nullptr);
  }
  template <class T>
  void multiply_rows(const StoredMatrix& w, RowView<const T> x, RowView<T> y) {
    gpu::multiply_rows(w, x, y, nullptr);
  }
  void add_columns(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y) {
    gpu::add_columns(w, map, x, y, nullptr);
  }
  template <class T>
  void add_columns(const StoredMatrix& w, RowView<const T> x, RowView<T> y) {
    gpu::add_columns(w, x, y, nullptr);
  }
  template <class T>
  void compare(const CompareRows<T>& rows, Disagreement* found) {
    gpu::compare(rows, found, nullptr);
  }

 private:
  std::map<const void*, std::unique_ptr<gpu::DeviceMemory>> memory_;
};

/// Says why, if there is no GPU.
bool has_device() {
  const DeviceState state = device_state();
  if (state.count > 0) return true;
  std::printf("SKIPPED: no GPU: %s\n", state.reason.c_str());
  return false;
}

TEST_CASE("a GPU moves and decodes bytes as the CPU does") {
  if (has_device()) check_bytes<DeviceMachine>();
}

TEST_CASE("a GPU's products have the CPU's bits") {
  if (has_device()) check_products<DeviceMachine>();
}

TEST_CASE("a GPU's ops over residues have the CPU's bits") {
  if (has_device()) check_ops<DeviceMachine, Field>();
}

TEST_CASE("a GPU's ops over floats have the CPU's bits, or nearly where they take exponentials") {
  if (!has_device()) return;
  check_ops<DeviceMachine, double>();
  check_ops<DeviceMachine, float>();
}

TEST_CASE("without a GPU, the kernels' calls fail with a reason and the state names it") {
  const DeviceState state = device_state();
  CHECK_FALSE(state.compiled_for.empty());
  CHECK((state.count > 0) == state.reason.empty());
  if (state.count > 0) return;
  std::uint8_t value = 3;
  CHECK_THROWS_AS(gpu::DeviceMemory(1), Error);
  CHECK_THROWS_AS(gpu::run(Fill<std::uint8_t>{&value, 1, 7}, nullptr), Error);
  CHECK_THROWS_AS(gpu::wait_for(nullptr), Error);
  CHECK(value == 3);
}

}  // namespace
}  // namespace shardtool::kernels
