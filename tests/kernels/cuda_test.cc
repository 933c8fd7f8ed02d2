#include <cstdio>

#include "kernels/device/device.h"
#include "lib/base/error.h"
#include "tests/kernels/accelerator_machine.h"
#include "tests/kernels/machine_test.h"
#include "tests/kernels/native_laws.h"
#include "tests/support/throws.h"

namespace shardtool::kernels {
namespace {

struct FirstGpu {
  /// CUDA documents at most a few units in the last place for exp, tanh, erf and log1p.
  static constexpr double kRoundings = 64;
  static Accelerator& accelerator() {
    static const auto gpu = open_accelerator(0);
    return *gpu;
  }
};
using GpuMachine = AcceleratorMachine<FirstGpu>;

/// Prints the reason if there is no GPU.
bool has_device() {
  const DeviceState state = device_state();
  if (state.count > 0) return true;
  std::printf("SKIPPED: no GPU: %s\n", state.reason.c_str());
  return false;
}

TEST_CASE("a GPU moves and decodes bytes as the CPU does") {
  if (has_device()) check_bytes<GpuMachine>();
}

TEST_CASE("a GPU's products have the CPU's bits") {
  if (has_device()) check_products<GpuMachine>();
}

TEST_CASE("products of a GPU's library are the CPU's where sums are exact in any order") {
  if (!has_device()) return;
  const ProductLibrary library = FirstGpu::accelerator().product_library();
  if (!library.is_here()) {
    std::printf("SKIPPED: %s\n", library.missing.c_str());
    return;
  }
  CHECK(rc::check("native", [] { native_law(FirstGpu::accelerator()); }));
}

TEST_CASE("a GPU's ops over residues have the CPU's bits") {
  if (has_device()) check_ops<GpuMachine, Field>();
}

TEST_CASE("a GPU's ops over floats have the CPU's bits, or nearly where they take exponentials") {
  if (!has_device()) return;
  check_ops<GpuMachine, double>();
  check_ops<GpuMachine, float>();
}

TEST_CASE("without a GPU, the kernels' calls fail with a reason and the state names it") {
  const DeviceState state = device_state();
  CHECK_FALSE(state.compiled_for.empty());
  CHECK((state.count > 0) == state.reason.empty());
  CHECK_ERROR(kEngineMissing, open_accelerator(state.count));
  if (state.count > 0) return;
  std::uint8_t value = 3;
  CHECK_ERROR(kDeviceFailed, (gpu::run(Fill<std::uint8_t>{&value, 1, 7}, nullptr), 0));
  CHECK(value == 3);
}

}  // namespace
}  // namespace shardtool::kernels
