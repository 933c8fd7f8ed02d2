// The demo's products on accelerators. A thread with its own memory replaces a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <variant>

#include "kernels/device/device.h"
#include "lib/comm/embedded.h"
#include "lib/tutorial/demo.h"
#include "lib/tutorial/layers/accelerated_product.h"
#include "tests/support/emulated_accelerator.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"
#include "tests/tutorial/report_text.h"

using namespace shardtool;
using namespace shardtool::tutorial;
using test::EmulatedAccelerator;
using test::PlannedFailure;
using Pace = EmulatedAccelerator::Pace;

namespace {

constexpr DemoSizes kSmallSizes{6, 10, 5, 7, 1};

template <Number T>
void check_same_products() {
  CHECK(rc::check("a product there = times", [] {
    const auto rows = *gen::between(0, 5);
    const auto inner = *gen::between(0, 40);
    const auto columns = *gen::between(0, 5);
    const auto seed = static_cast<std::uint64_t>(*gen::between(0, 1000));
    const Matrix<T> a = random_matrix<T>(rows, inner, seed);
    const Matrix<T> b = random_matrix<T>(inner, columns, seed + 1);
    EmulatedAccelerator accelerator(Pace::kLate);
    {
      const Product<T> product = product_on<T>(accelerator);
      RC_ASSERT(product(a, b) == times(a, b));
      RC_ASSERT(product(transposed(b), transposed(a)) == times(transposed(b), transposed(a)));
      RC_ASSERT(accelerator.works() == 2);
    }
    RC_ASSERT(accelerator.allocations() == 0U);
  }));
}

TEST_CASE("a product on an accelerator has the bits of the CPU's, in every arithmetic") {
  check_same_products<Field>();
  check_same_products<double>();
  check_same_products<float>();
}

TEST_CASE("factors that do not fit are refused before anything runs there") {
  EmulatedAccelerator accelerator(Pace::kEager);
  const Product<double> product = product_on<double>(accelerator);
  CHECK_ERROR(kShapeMismatch, product(Matrix<double>(2, 3), Matrix<double>(2, 3)));
  CHECK(accelerator.works() == 0);
}

/// Reports of every rank, each with an accelerator of its own that `make` makes.
template <class Make>
std::vector<DemoReport> reports_with(int devices, const Make& make) {
  std::vector<DemoReport> reports(static_cast<size_t>(devices));
  const DemoSystems systems = demo_systems(kSmallSizes, devices);
  comm::run_embedded(devices, [&](comm::Communicator& comm) {
    const std::unique_ptr<kernels::Accelerator> accelerator = make(comm.rank());
    reports[static_cast<size_t>(comm.rank())] = run_mlp_demo(comm, systems, accelerator.get());
  });
  return reports;
}

TEST_CASE("the demo on accelerators has the CPU's report, to the last digit") {
  for (int devices = 1; devices <= 4; ++devices) {
    const auto on_cpu =
        reports_with(devices, [](int) -> std::unique_ptr<kernels::Accelerator> { return nullptr; });
    const auto there = reports_with(devices, [](int rank) {
      return std::make_unique<EmulatedAccelerator>(rank % 2 == 0 ? Pace::kLate : Pace::kEager);
    });
    CHECK(there.front().passed);
    for (const DemoReport& report : there) CHECK(text_of(report) == text_of(on_cpu.front()));
  }
}

/// Leaves the last row of the stored factor out of every product.
class WrongAccelerator final : public kernels::Accelerator {
 public:
  std::string backend() const override { return right_.backend(); }
  std::string name() const override { return right_.name(); }
  kernels::ProductLibrary product_library() override { return right_.product_library(); }
  std::byte* allocate(size_t bytes) override { return right_.allocate(bytes); }
  std::byte* allocate_host(size_t bytes) override { return right_.allocate_host(bytes); }
  void release(std::byte* memory) noexcept override { right_.release(memory); }
  void release_host(std::byte* memory) noexcept override { right_.release_host(memory); }
  void upload(const std::byte* from, size_t bytes, std::byte* to) override {
    right_.upload(from, bytes, to);
  }
  void download(const std::byte* from, size_t bytes, std::byte* to) override {
    right_.download(from, bytes, to);
  }
  void run(const kernels::AnyWork& work) override {
    kernels::AnyWork wrong = work;
    std::visit([](auto& one) { spoil(one); }, wrong);
    right_.run(wrong);
  }
  Ticket ticket() override { return right_.ticket(); }
  void wait(Ticket ticket) override { right_.wait(ticket); }

 private:
  template <class Work>
  static void spoil(Work&) {}
  template <class T>
  static void spoil(kernels::ColumnProducts<T>& work) {
    work.w.rows = std::max<i64>(0, work.w.rows - 1);
  }

  EmulatedAccelerator right_{Pace::kEager};
};

TEST_CASE(
    "an accelerator that multiplies wrong fails in every system: the reference is the CPU's") {
  for (const int devices : {1, 3}) {
    const auto reports =
        reports_with(devices, [](int) { return std::make_unique<WrongAccelerator>(); });
    CHECK_FALSE(reports.front().passed);
    for (const DemoRow& row : reports.front().rows) {
      CAPTURE(row.system);
      CAPTURE(row.number);
      CHECK_FALSE(row.fault.empty());
    }
  }
}

TEST_CASE("an accelerator that fails ends the demo on all devices, by its name") {
  for (const auto call : {PlannedFailure::Call::kWork, PlannedFailure::Call::kAllocate}) {
    const auto error = testing::error_of([&] {
      return reports_with(3, [&](int rank) {
        const PlannedFailure failure{rank == 1 ? call : PlannedFailure::Call::kNone, 0};
        return std::make_unique<EmulatedAccelerator>(Pace::kEager, failure);
      });
    });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kDeviceFailed);
    CHECK(error->message() == "the GPU failed: as the test planned");
  }
}

TEST_CASE("the demo on a GPU has the CPU's report, to the last digit") {
  const kernels::DeviceState state = kernels::device_state();
  if (state.count == 0) {
    std::cout << "SKIPPED: no GPU: " << state.reason << "\n";
    return;
  }
  const auto on_cpu =
      reports_with(4, [](int) -> std::unique_ptr<kernels::Accelerator> { return nullptr; });
  const auto there =
      reports_with(4, [&](int rank) { return kernels::open_accelerator(rank % state.count); });
  for (const DemoReport& report : there) CHECK(text_of(report) == text_of(on_cpu.front()));
}

}  // namespace
