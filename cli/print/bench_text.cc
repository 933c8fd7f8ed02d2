#include <fmt/format.h>

#include "cli/print/table.h"
#include "cli/print/text.h"
#include "lib/api/bench_io.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

std::string percent(double fraction) {
  return fmt::format("{:.0f} %", 100 * fraction);
}

const api::IoMeasure& measure(const api::BenchIoReport& report, std::string_view name) {
  for (const auto& candidate : report.measures) {
    if (candidate.name == name) return candidate;
  }
  throw Error(ErrorCode::kInternal, fmt::format("nothing measures '{}'", name));
}

}  // namespace

void print_text(Session& session, const api::BenchIoReport& report) {
  if (!session.quiet()) {
    session.out().write(labelled(
        session.out_style(), "bench",
        fmt::format("{} in {}, {}, medians{}", format_bytes(report.bytes),
                    quote_for_message(report.folder), plural(report.rounds, "round"),
                    report.direct_io ? "" : "; no direct I/O here: all through the page cache")));
    Table table{{{"measure"},
                 {"rate", true},
                 {"CPU s/GB", true},
                 {"warm split", true},
                 {"cold split", true}},
                {}};
    for (const auto& row : report.measures) {
      table.rows.push_back({row.what, format_bytes(static_cast<i64>(row.bytes_per_second)) + "/s",
                            fmt::format("{:.2f}", row.cpu_seconds_per_gigabyte),
                            percent(row.warm_split), percent(row.cold_split)});
    }
    print_table(session.out(), table, TableFormat::kText);
  }
  session.out().write(
      fmt::format("split reached {} of the write rate (source in the page cache), {} of the read "
                  "rate (source on the device)\n",
                  percent(measure(report, "direct_write").warm_split),
                  percent(measure(report, "direct_read").cold_split)));
}

}  // namespace shardtool::cli
