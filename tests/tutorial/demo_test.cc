#include "lib/tutorial/demo.h"

#include <doctest/doctest.h>

#include <set>

#include "lib/comm/embedded.h"
#include "tests/support/throws.h"
#include "tests/tutorial/processes.h"
#include "tests/tutorial/report_text.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

std::vector<DemoReport> embedded_reports(int devices, std::uint64_t seed = 1) {
  std::vector<DemoReport> reports(static_cast<size_t>(devices));
  comm::run_embedded(devices, [&](comm::Communicator& comm) {
    reports[static_cast<size_t>(comm.rank())] = run_mlp_demo(comm, {6, 10, 5, 7, seed});
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
      comm::run_embedded(devices, [&](comm::Communicator& comm) {
        const i64 n = devices;
        DemoReport report = run_mlp_demo(comm, {n, n, n, n, seed});
        if (comm.rank() == 0) reports[0] = std::move(report);
      });
      CAPTURE(text_of(reports[0]));
      CHECK(reports[0].passed);
    }
  }
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

TEST_CASE("sizes that make no model are refused") {
  const auto run = [](int devices, const DemoOptions& options) {
    std::vector<DemoReport> reports(1);
    comm::run_embedded(devices, [&](comm::Communicator& comm) { run_mlp_demo(comm, options); });
    return reports;
  };
  CHECK_ERROR(kUsage, run(1, {6, 0, 5, 7, 1}));
  CHECK_ERROR(kUsage, run(1, {6, 10, 5, -7, 1}));
  CHECK_ERROR(kEmptyShard, run(4, {6, 3, 5, 7, 1}));
}

}  // namespace
