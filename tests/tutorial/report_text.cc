#include "tests/tutorial/report_text.h"

#include <fmt/format.h>

namespace shardtool::tutorial {

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

}  // namespace shardtool::tutorial
