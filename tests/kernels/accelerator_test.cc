#include "kernels/device/accelerator.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "kernels/device/upload_ring.h"
#include "kernels/device/workbench.h"
#include "tests/kernels/accelerator_machine.h"
#include "tests/kernels/accelerator_table.h"
#include "tests/kernels/machine_test.h"
#include "tests/support/emulated_accelerator.h"
#include "tests/support/throws.h"

namespace shardtool::kernels {
namespace {

using test::EmulatedAccelerator;
using test::PlannedFailure;
using Pace = EmulatedAccelerator::Pace;

template <Pace kPace>
struct Emulated {
  static constexpr double kRoundings = 0;
  static Accelerator& accelerator() {
    static EmulatedAccelerator one(kPace);
    return one;
  }
};
using LateMachine = AcceleratorMachine<Emulated<Pace::kLate>>;
using EagerMachine = AcceleratorMachine<Emulated<Pace::kEager>>;

std::vector<std::uint64_t> counted_from(std::uint64_t first, size_t n) {
  std::vector<std::uint64_t> numbers(n);
  for (size_t i = 0; i < n; ++i) numbers[i] = first + i;
  return numbers;
}

TEST_CASE("works that an accelerator queues move, multiply and compute as the CPU does") {
  check_bytes<LateMachine>();
  check_products<LateMachine>();
  check_ops<EagerMachine, Field>();
  check_ops<LateMachine, double>();
  check_ops<LateMachine, float>();
}

TEST_CASE("what stands in for an accelerator refuses memory that is not its own") {
  EmulatedAccelerator accelerator(Pace::kEager);
  std::array<std::byte, 16> host{};
  std::byte* const here = accelerator.allocate_host(16);
  std::byte* const there = accelerator.allocate(16);
  CHECK_ERROR(kInternal, (accelerator.upload(host.data(), 16, there), 0));
  CHECK_ERROR(kInternal, (accelerator.upload(here, 17, there), 0));
  CHECK_ERROR(kInternal, (accelerator.upload(here, 16, here), 0));
  CHECK_ERROR(kInternal, (accelerator.download(there, 16, host.data()), 0));
  std::uint64_t number = 1;
  CHECK_ERROR(kInternal, (accelerator.run(Fill<std::uint64_t>{&number, 1, 2}), 0));
  accelerator.release(there);
  CHECK_ERROR(
      kInternal,
      (accelerator.run(Fill<std::uint8_t>{reinterpret_cast<std::uint8_t*>(there), 1, 2}), 0));
  accelerator.release_host(here);
  CHECK(number == 1);
  CHECK(accelerator.allocations() == 0);
}

/// Signal that ends a process which runs `action`.
template <class Action>
int signal_of(const Action& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    action();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_CASE("the memory of what stands in for an accelerator is closed to the host") {
  EmulatedAccelerator accelerator(Pace::kEager);
  std::byte* const there = accelerator.allocate(16);
  CHECK(signal_of([&] { there[3] = std::byte{1}; }) == SIGSEGV);
  CHECK(signal_of([] {}) == 0);
  accelerator.release(there);
}

TEST_CASE(
    "a result that nobody waited for is not there, and a source that changes too early shows") {
  EmulatedAccelerator accelerator(Pace::kLate);
  const PairedMemory memory(accelerator, 8);
  std::memset(memory.here(), 1, 8);
  accelerator.upload(memory.here(), 8, memory.there());
  std::memset(memory.here(), 2, 8);  // violates A1
  accelerator.download(memory.there(), 8, memory.here());
  const auto ticket = accelerator.ticket();
  std::memset(memory.here(), 3, 8);
  accelerator.wait(ticket);
  CHECK(memory.here()[0] == std::byte{3});
}

TEST_CASE("fresh memory is poisoned on both sides") {
  EmulatedAccelerator accelerator(Pace::kLate);
  const PairedMemory memory(accelerator, 8);
  CHECK(memory.here()[7] == kPoison);
  accelerator.download(memory.there(), 8, memory.here());
  std::memset(memory.here(), 0, 8);
  accelerator.wait(accelerator.ticket());
  CHECK(memory.here()[7] == kPoison);
}

TEST_CASE("a failure of any call is told to who waits, and releases what was allocated") {
  using Call = PlannedFailure::Call;
  for (const Call call : {Call::kAllocate, Call::kAllocateHost, Call::kCopy, Call::kWork}) {
    for (const Pace pace : {Pace::kEager, Pace::kLate}) {
      EmulatedAccelerator accelerator(pace, {call, call == Call::kCopy ? 1 : 0});
      std::vector<std::uint64_t> numbers(5);
      const auto error = testing::error_of([&] {
        Workbench bench(&accelerator);
        bench.run(Fill<std::uint64_t>{bench.out(numbers), 5, 7});
        bench.run(Fill<std::uint64_t>{bench.in_out(numbers), 5, 8});
        return bench.finish(), 0;
      });
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::kDeviceFailed);
      CHECK(error->exit_status() == 6);
      CHECK(error->notes().at(0).first == "call");
      CHECK(accelerator.allocations() == 0);
    }
  }
}

/// Checks and overwrites every chunk on its way, and adds up the received ones.
void check_ring(Accelerator& accelerator, size_t slots) {
  constexpr size_t kChunks = 11;
  UploadRing ring(accelerator, slots);
  Workbench bench(&accelerator);
  std::vector<std::uint64_t> sums(kChunks * 4);
  std::uint64_t* const there = bench.out(sums);
  for (size_t i = 0; i < kChunks; ++i) {
    const size_t n = i % 4 + 1;
    const auto numbers = counted_from(100 * i, n);
    std::memcpy(ring.begin(n * 8), numbers.data(), n * 8);
    const std::byte* const chunk = ring.send();
    accelerator.run(BoxCopy{
        {0, 0, static_cast<i64>(n * 8), {}}, chunk, reinterpret_cast<std::byte*>(there + 4 * i)});
    ring.end();
  }
  bench.finish();
  for (size_t i = 0; i < kChunks; ++i) {
    for (size_t k = 0; k <= i % 4; ++k) CHECK(sums[4 * i + k] == 100 * i + k);
  }
}

TEST_CASE("a ring hands chunk after chunk over, however few its slots and whatever the pace") {
  for (const Pace pace : {Pace::kEager, Pace::kLate}) {
    EmulatedAccelerator accelerator(pace);
    for (const size_t slots : {1, 2, 3, 20}) check_ring(accelerator, slots);
    CHECK(accelerator.allocations() == 0);
  }
}

TEST_CASE("a workbench computes the same on the host and on an accelerator, again and again") {
  EmulatedAccelerator accelerator(Pace::kLate);
  for (Accelerator* const where :
       {static_cast<Accelerator*>(nullptr), static_cast<Accelerator*>(&accelerator)}) {
    Workbench bench(where);
    for (const size_t n : {3, 200'000, 0, 7}) {
      std::vector<double> x(n, 1.5), factor(n, 2), y(n), z(n, 1);
      double* const between = bench.room<double>(n);
      const auto columns = static_cast<i64>(n);
      bench.run(ScaleRows<double>{
          {bench.in(x), 1, columns}, columns, bench.in(factor), {between, 1, columns}});
      bench.run(ScaleRows<double>{
          {between, 1, columns}, columns, bench.in(factor), {bench.out(y), 1, columns}});
      double* const both = bench.in_out(z);
      bench.run(ScaleRows<double>{{both, 1, columns}, columns, both, {both, 1, columns}});
      bench.finish();
      CHECK(y == std::vector<double>(n, 6));
      CHECK(z == std::vector<double>(n, 1));
    }
  }
  CHECK(accelerator.works() == 12);
}

TEST_CASE("an array stays on the accelerator until the host reads it") {
  EmulatedAccelerator accelerator(Pace::kLate);
  {
    Workbench bench(&accelerator);
    constexpr i64 kCount = 5;
    const Array<double> x(std::vector<double>{1, 2, 3, 4, 5});
    Array<double> y(kCount);
    const auto add = [&](const Array<double>& a, const Array<double>& b, Array<double>& to) {
      const double* const left = bench.in(a);
      const double* const right = bench.in(b);
      bench.run(CombineAll<double>{false, left, right, kCount, bench.out(to)});
      bench.finish();
    };
    add(x, x, y);
    add(y, x, y);
    add(y, y, y);
    CHECK(accelerator.downloads() == 0);
    CHECK(accelerator.copied_bytes() == kCount * 8);  // x, once
    CHECK(y.is_there());
    CHECK_FALSE(y.is_here());
    CHECK(y.values() == std::vector<double>{6, 12, 18, 24, 30});
    CHECK(std::as_const(y)[4] == 30);
    CHECK(accelerator.downloads() == 1);
    CHECK(bench.waits() == 1);
    y[4] = 1;  // gives up the other side
    CHECK_FALSE(y.is_there());
    add(y, x, y);
    CHECK(y.values() == std::vector<double>{7, 14, 21, 28, 6});
  }
  CHECK(accelerator.allocations() == 0);
}

TEST_CASE("copies of an array share its memory until one of them is written") {
  EmulatedAccelerator accelerator(Pace::kLate);
  Workbench bench(&accelerator);
  Array<double> x(std::vector<double>{1, 2});
  CHECK(bench.in(x) == bench.in(x));
  Array<double> there = x;
  CHECK(bench.in(there) == bench.in(x));
  const double* const twos = bench.in(std::vector<double>{2, 2});
  double* const own = bench.in_out(there);
  CHECK(own != bench.in(x));
  bench.run(CombineAll<double>{true, own, twos, 2, own});
  Array<double> made = there;
  there[0] = 9;
  bench.finish();
  CHECK(x.values() == std::vector<double>{1, 2});
  CHECK(made.values() == std::vector<double>{2, 4});
  CHECK(there.values() == std::vector<double>{9, 4});
  Array<double> zeros(3);
  CHECK(bench.zeros(zeros) != nullptr);
  CHECK_FALSE(zeros.is_here());
  CHECK(zeros.values() == std::vector<double>(3));
  Array<double> none;
  CHECK(bench.out(none) == nullptr);
  CHECK(none.values().empty());
}

TEST_CASE("copies of an array share the host's memory until one of them is written") {
  Array<double> x(std::vector<double>{1, 2});
  Array<double> y = x;
  CHECK(y.shares_with(x));
  CHECK(std::as_const(y).data() == std::as_const(x).data());
  y[0] = 9;
  CHECK_FALSE(y.shares_with(x));
  CHECK(x.values() == std::vector<double>{1, 2});
  CHECK(y.values() == std::vector<double>{9, 2});
  const double* const alone = std::as_const(x).data();
  CHECK(x.data() == alone);
  Workbench host;
  Array<double> z = x;
  host.in_out(z)[1] = 5;
  CHECK(x.values() == std::vector<double>{1, 2});
  CHECK(z.values() == std::vector<double>{1, 5});
  const std::vector<double> taken = Array<double>(x).values();
  CHECK(taken == x.values());
  const Array<double> none;
  CHECK(none.values().empty());
  CHECK_FALSE(none.shares_with(none));
}

TEST_CASE("an array of one accelerator is moved to another that reads it") {
  EmulatedAccelerator first(Pace::kLate);
  EmulatedAccelerator second(Pace::kEager);
  Workbench here(&first);
  Workbench there(&second);
  const Array<double> x(std::vector<double>{1, 2});
  Array<double> y(2);
  here.run(CombineAll<double>{false, here.in(x), here.in(x), 2, here.out(y)});
  const Array<double> shared = y;
  double* const own = there.in_out(y);
  there.run(CombineAll<double>{true, own, there.in(x), 2, own});
  CHECK(y.values() == std::vector<double>{2, 8});
  CHECK(shared.values() == std::vector<double>{2, 4});
  CHECK(first.downloads() == 2);
}

TEST_CASE("memory that is given up is used again, in order, without a wait") {
  for (const Pace pace : {Pace::kLate, Pace::kEager}) {
    EmulatedAccelerator accelerator(pace);
    {
      Workbench bench(&accelerator);
      constexpr size_t kCount = 1000;
      std::vector<Array<double>> kept;
      for (int round = 0; round < 50; ++round) {
        Array<double> x(std::vector<double>(kCount, round));
        Array<double> y(kCount);
        const double* const one = bench.in(std::vector<double>(kCount, 1));
        bench.run(CombineAll<double>{false, bench.in(x), one, kCount, bench.out(y)});
        bench.finish();
        if (round % 10 == 0) kept.push_back(std::move(y));
      }
      CHECK(accelerator.downloads() == 0);
      // Five that are kept, three of a round, and the host memory of copies.
      CHECK(accelerator.allocations() <= 5 + 3 + 4);
      for (size_t i = 0; i < kept.size(); ++i) {
        CHECK(kept[i].values() == std::vector<double>(kCount, 10.0 * static_cast<double>(i) + 1));
      }
    }
    CHECK(accelerator.allocations() == 0);
  }
}

TEST_CASE("host memory of copies is bounded, and reused only when its copies are done") {
  EmulatedAccelerator accelerator(Pace::kLate);
  const auto memory = std::make_shared<DeviceMemory>(accelerator, 4096);
  Workbench bench(memory);
  std::vector<Array<std::uint64_t>> arrays;
  for (size_t i = 0; i < 40; ++i) {
    arrays.emplace_back(counted_from(100 * i, 60));
    bench.in(arrays.back());
  }
  CHECK(accelerator.most_bytes() <= 4096 + 40 * 512);
  for (size_t i = 0; i < arrays.size(); ++i) {
    Array<std::uint64_t> copy(60);
    accelerator.run(BoxCopy{{0, 0, 480, {}},
                            reinterpret_cast<const std::byte*>(bench.in(arrays[i])),
                            reinterpret_cast<std::byte*>(bench.out(copy))});
    CHECK(copy.values() == counted_from(100 * i, 60));
  }
}

TEST_CASE("the table of what works cost runs every kind of them, within its memory") {
  EmulatedAccelerator accelerator(Pace::kEager);
  std::string table;
  accelerator_table(accelerator, 1, 1, [&](const std::string& line) { table += line; });
  CAPTURE(table);
  CHECK(std::ranges::count(table, '\n') == 39);
  CHECK(table.find("| rms norm, residues | ") != std::string::npos);
  CHECK(table.find("nan") == std::string::npos);
  CHECK(accelerator.allocations() == 0);
}

}  // namespace
}  // namespace shardtool::kernels
