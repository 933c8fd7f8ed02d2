#include <fmt/format.h>

#include <cmath>
#include <map>

#include "cli/print/plan_search.h"
#include "cli/print/table.h"
#include "cli/print/text.h"
#include "lib/base/text.h"
#include "lib/plan/collective/collective_time.h"

namespace shardtool::cli {
namespace {

using plan::Objective;

constexpr size_t kShownLayouts = 10;

std::string tokens_text(double tokens_per_s) {
  const double rounded = plan::two_digits(tokens_per_s);
  return rounded < 10 ? fmt::format("{:g}", rounded) : format_count(std::llround(rounded));
}

/// A value of the objective with its unit.
std::string value_text(double value, Objective objective) {
  switch (objective) {
    case Objective::kThroughput:
    case Objective::kGoodput:
      return tokens_text(value) + " tokens/s per device";
    case Objective::kUser:
      return tokens_text(value) + " tokens/s per client";
    case Objective::kLatency:
      return plan::format_modelled_us(-value * 1e6) + " per answer";
    case Objective::kCost:
      return fmt::format("{:.3g} per million tokens", -value);
  }
  return {};
}

/// "dp=2 tp=4, cache fp8", and its checkpoint if there are several.
std::string name_of(const api::SearchOptions& options, const api::ServingRow& row) {
  std::string name = to_string(row.layout);
  if (row.sequence_parallel) name += " sequence-parallel";
  if (!row.kv_dtype.empty()) name += ", cache " + row.kv_dtype;
  if (options.plan.sources.size() > 1)
    name += ", " + quote_for_message(options.plan.sources[row.source]);
  return name;
}

void print_line(Session& session, std::string_view label, const std::string& text) {
  session.out().write(labelled(session.out_style(), label, text));
}

void print_best(Session& session, const api::SearchOptions& options,
                const api::SearchReport& report) {
  const api::ServingRow& best = report.rows[*report.optimum];
  print_line(
      session, "best",
      fmt::format("{} on {} with {}: {}; TTFT {}, TPOT {}", name_of(options, best),
                  plural(best.layout.devices(), "device"), plural(best.concurrency, "client"),
                  value_text(report.value, options.objective),
                  plan::format_modelled_us(best.offer.ttft_us),
                  plan::format_modelled_us(best.offer.tpot_us)));
  const bool least =
      options.objective == plan::Objective::kLatency || options.objective == plan::Objective::kCost;
  print_line(session, "bound",
             fmt::format("no layout has {} than {}", least ? "less" : "more",
                         value_text(report.bound, options.objective)));
  for (const api::Loss& loss : report.losses) {
    if (loss.row != report.runner_up) continue;
    print_line(
        session, "runner-up",
        fmt::format("{} loses to {} by {:.0f} %: {}", name_of(options, report.rows[loss.row]),
                    name_of(options, best), 100 * loss.by, loss.reason));
  }
}

void print_bindings(Session& session, const api::SearchReport& report) {
  for (const api::Binding& binding : report.bindings) {
    const std::string gain =
        binding.gain > 0 ? fmt::format(" would be {:.0f} % better, at ", 100 * binding.gain) : ": ";
    print_line(session, "binds",
               fmt::format("{}: {}{}{}", binding.constraint, binding.layout, gain, binding.reason));
  }
}

std::vector<std::string> cells_of(const api::SearchOptions& options, const api::ServingRow& row,
                                  const std::string& loses) {
  return {name_of(options, row),
          format_count(row.layout.devices()),
          format_count(row.concurrency),
          format_count(row.fits),
          plan::format_modelled_us(row.offer.ttft_us),
          plan::format_modelled_us(row.offer.tpot_us),
          tokens_text(plan::value_of(row.offer, Objective::kThroughput)),
          loses};
}

void print_rows(Session& session, const api::SearchOptions& options,
                const api::SearchReport& report) {
  Table table{{{"layout"},
               {"devices", true},
               {"clients", true},
               {"fit", true},
               {"TTFT", true},
               {"TPOT", true},
               {"tokens/s/device", true},
               {"loses by"}},
              {}};
  table.rows.push_back(cells_of(options, report.rows[*report.optimum], ""));
  for (const api::Loss& loss : report.losses) {
    if (table.rows.size() == kShownLayouts) break;
    table.rows.push_back(cells_of(options, report.rows[loss.row],
                                  fmt::format("{:.0f} %: {}", 100 * loss.by, loss.reason)));
  }
  print_table(session.out(), table, TableFormat::kText);
  const size_t more = report.losses.size() + 1 - table.rows.size();
  if (more > 0) print_line(session, "", fmt::format("and {} more, see --json", more));
}

void print_refused(Session& session, const api::SearchReport& report) {
  std::map<std::string, std::pair<i64, const api::RefusedLayout*>> by_constraint;
  for (const api::RefusedLayout& refused : report.refused) {
    auto& [count, first] = by_constraint[refused.constraint];
    if (count++ == 0) first = &refused;
  }
  for (const auto& [constraint, of] : by_constraint) {
    print_line(session, "excluded",
               fmt::format("{} by {}, such as {}: {}", plural(of.first, "layout"), constraint,
                           to_string(of.second->layout), of.second->reason));
  }
}

}  // namespace

void print_text(Session& session, const api::SearchOptions& options,
                const api::SearchReport& report) {
  for (const std::string& warning : report.warnings) print_line(session, "warning", warning);
  if (report.optimum) {
    print_best(session, options, report);
  } else {
    print_line(session, "none", "no layout fits and keeps the limits");
  }
  print_bindings(session, report);
  if (report.optimum) print_rows(session, options, report);
  print_refused(session, report);
  print_line(session, "model",
             fmt::format("times are modelled on {}: passes, other clients' prompts, waiting and "
                         "an engine's own time",
                         options.plan.hardware->name));
}

}  // namespace shardtool::cli
