#include "lib/tutorial/demo.h"

#include <doctest/doctest.h>

#include <atomic>
#include <bit>
#include <set>

#include "lib/base/interruption.h"
#include "lib/comm/embedded.h"
#include "tests/support/throws.h"
#include "tests/tutorial/processes.h"
#include "tests/tutorial/report_text.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

std::vector<DemoReport> embedded_reports(int devices, std::uint64_t seed = 1) {
  std::vector<DemoReport> reports(static_cast<size_t>(devices));
  const DemoSystems systems = demo_systems({6, 10, 5, 7, seed}, devices);
  comm::run_embedded(devices, [&](comm::Communicator& comm) {
    reports[static_cast<size_t>(comm.rank())] = run_mlp_demo(comm, systems);
  });
  return reports;
}

TEST_CASE("the demo passes on 1 to 5 devices, and every device has the same report") {
  for (int devices = 1; devices <= 5; ++devices) {
    const auto reports = embedded_reports(devices);
    CAPTURE(text_of(reports[0]));
    CHECK(reports[0].passed);
    for (const DemoReport& report : reports) CHECK(text_of(report) == text_of(reports[0]));
  }
}

TEST_CASE("the demo passes on the smallest sizes and on many seeds") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (int devices = 1; devices <= 3; ++devices) {
      std::vector<DemoReport> reports(1);
      const i64 n = devices;
      const DemoSystems systems = demo_systems({n, n, n, n, seed}, devices);
      comm::run_embedded(devices, [&](comm::Communicator& comm) {
        DemoReport report = run_mlp_demo(comm, systems);
        if (comm.rank() == 0) reports[0] = std::move(report);
      });
      CAPTURE(text_of(reports[0]));
      CHECK(reports[0].passed);
    }
  }
}

TEST_CASE("an interruption ends the demo, also on one device, which waits for no other") {
  const DemoSizes sizes{6, 10, 5, 7, 1};
  const DemoSystems systems = demo_systems(sizes, 1);
  std::atomic<bool> flag{false};
  const Interruptible scope(&flag);
  comm::run_embedded(1, [&](comm::Communicator& comm) {
    flag = false;
    CHECK(run_mlp_demo(comm, systems).passed);
    flag = true;
    CHECK_ERROR(kInterrupted, run_mlp_demo(comm, systems));
    flag = false;
  });
  flag = true;
  CHECK_ERROR(kInterrupted, demo_systems(sizes, 1));
}

TEST_CASE("a report has every system in three arithmetics, and every fault as seen") {
  const DemoReport report = embedded_reports(4).front();
  std::set<std::string> systems;
  size_t faults = 0;
  for (const DemoRow& row : report.rows) {
    if (row.planted.empty())
      systems.insert(row.system);
    else
      ++faults;
    CHECK(row.fault.empty() == row.planted.empty());
    CHECK(row.is_judged == (row.number != "f32"));
    CHECK(row.in_flight.empty() == !row.system.starts_with("pipeline"));
  }
  CHECK(systems.size() == 11);
  CHECK(faults == 6);
  CHECK(report.rows.size() == 3 * systems.size() + faults);
  CHECK(report.not_planted.empty());
  CHECK(embedded_reports(1).front().not_planted.size() == 2);
}

TEST_CASE_TEMPLATE("processes have the embedded engine's report, to the last digit", Processes, Tcp,
                   Mpi) {
  if (!can_run<Processes>()) return;
  for (int size = 1; size <= 4; ++size) {
    CAPTURE(size);
    const auto seed = static_cast<std::uint64_t>(10 + size);
    const comm::Launched launched =
        comm::launch(Processes::kName, size, "demo", static_cast<int>(seed));
    const std::string embedded = text_of(embedded_reports(size, seed).front());
    CHECK(launched.status == 0);
    CHECK(launched.said == std::vector<std::string>(static_cast<size_t>(size), embedded));
  }
}

/// The bytes of the numbers first, first + 1, ... as BF16, which has them exactly.
std::vector<std::byte> counting(i64 n, int first) {
  std::vector<std::byte> bytes;
  for (i64 i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(first + i));
    bytes.push_back(static_cast<std::byte>(bits >> 16 & 0xff));
    bytes.push_back(static_cast<std::byte>(bits >> 24));
  }
  return bytes;
}

TEST_CASE("the systems of two layers take the parameters of a checkpoint") {
  const StoredParameters stored{
      {"layer_0/weights", {Dtype::kBF16, 3, 5, counting(15, -7)}},
      {"layer_1/weights", {Dtype::kBF16, 5, 4, counting(20, -9)}},
  };
  const DemoSizes sizes{3, 5, 4, 6, 1};
  const auto systems = all_systems<double>(sizes, 2, stored);
  const auto& column_row = systems.at(1);
  CHECK(column_row.example.parameters.at("layer_0/weights")(0, 0) == -7);
  CHECK(column_row.example.parameters.at("layer_1/weights")(4, 3) == 10);
  CHECK(all_systems<Field>(sizes, 2, stored).at(1).example.parameters.at("layer_0/weights")(0, 1) ==
        Field::from_signed(-6));
  DemoReport report;
  const DemoSystems of_demo = demo_systems(sizes, 2, stored);
  comm::run_embedded(2, [&](comm::Communicator& comm) {
    const DemoReport made = run_mlp_demo(comm, of_demo);
    if (comm.rank() == 0) report = made;
  });
  CHECK(report.passed);
  CHECK(report.rows.at(1).expected_collectives ==
        "forward 1 all_reduce of 24; backward 1 all_reduce of 18");
}

TEST_CASE("sizes that make no model are refused") {
  const auto run = [](int devices, const DemoSizes& options) {
    std::vector<DemoReport> reports(1);
    const DemoSystems systems = demo_systems(options, devices);
    comm::run_embedded(devices, [&](comm::Communicator& comm) { run_mlp_demo(comm, systems); });
    return reports;
  };
  CHECK_ERROR(kUsage, run(1, {6, 0, 5, 7, 1}));
  CHECK_ERROR(kUsage, run(1, {6, 10, 5, -7, 1}));
  CHECK_ERROR(kEmptyShard, run(4, {6, 3, 5, 7, 1}));
}

}  // namespace
