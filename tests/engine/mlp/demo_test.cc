#include "shardtool/engine/mlp/demo.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "shardtool/comm/embedded.h"
#include "tests/comm/threads.h"
#include "tests/engine/mlp/on_devices.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::engine::mlp;

namespace {

constexpr DemoOptions kOptions{6, 10, 5, 7, 1};

/// Everything of a report, so that two can be compared.
std::string text_of(const DemoReport& report) {
  std::string text = fmt::format("{} {} {}\n", report.devices, report.directional, report.passed);
  for (const DemoRow& row : report.rows) {
    text += fmt::format("{} {} [{}] {} {} {} {} {} / {} {} {} {} {}\n", row.system, row.number,
                        row.planted, row.forward_equal, row.backward_equal, row.worst, row.adjoint,
                        row.collectives, row.expected_collectives, row.in_flight, row.fault,
                        row.is_as_expected, row.is_judged);
  }
  for (const std::string& reason : report.not_planted) text += reason + "\n";
  return text;
}

std::vector<DemoReport> embedded_reports(int devices) {
  std::vector<DemoReport> reports(static_cast<size_t>(devices));
  comm::run_embedded(devices, [&](comm::Communicator& comm) {
    reports[static_cast<size_t>(comm.rank())] = run_mlp_demo(comm, kOptions);
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
  CHECK(faults == 5);
  CHECK(report.rows.size() == 3 * systems.size() + faults);
  CHECK(report.not_planted.empty());
  CHECK(embedded_reports(1).front().not_planted.size() == 2);
}

TEST_CASE("the same demo over sockets has the same report, to the last digit") {
  const std::string embedded = text_of(embedded_reports(3).front());
  std::vector<std::string> texts(3);
  comm::run_processes(3, [&](comm::Communicator& comm) {
    texts[static_cast<size_t>(comm.rank())] = text_of(run_mlp_demo(comm, kOptions));
  });
  CHECK(texts == std::vector<std::string>(3, embedded));
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
