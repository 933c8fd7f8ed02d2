#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/print/plan_ops.h"
#include "cli/print/plan_tables.h"
#include "cli/print/text.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr size_t kWidestName = 26;

/// The mesh axes of more than one device.
std::vector<size_t> cutting_axes(const mesh::Mesh& mesh) {
  std::vector<size_t> axes;
  for (size_t a = 0; a < mesh.axes().size(); ++a) {
    if (mesh.axes()[a].size > 1) axes.push_back(a);
  }
  return axes;
}

/// The last part of a long name, from a dot on.
std::string shortened(const std::string& name) {
  if (name.size() <= kWidestName) return name;
  const size_t dot = name.find('.', name.size() - kWidestName);
  return "..." + name.substr(dot == std::string::npos ? name.size() - kWidestName : dot + 1);
}

/// "all_reduce attended", "slice x to axis 1"; with several mesh axes also "over tp".
std::string move_text(const api::OpMove& move, bool names_axes) {
  std::string text = fmt::format("{} {}", move.move, shortened(move.operand));
  if (names_axes) text += " over " + move.axes;
  if (move.to_axis >= 0) text += fmt::format(" to axis {}", move.to_axis);
  return text;
}

/// "R, S(0) -> S(2)" along one mesh axis.
std::string row_text(const api::OpLine& line, size_t axis) {
  std::vector<std::string> operands;
  for (const api::OpOperand& operand : line.operands) {
    operands.push_back(to_string(operand.needs[axis]));
  }
  const std::string result = to_string(line.result[axis]);
  if (operands.empty()) return "-> " + result;
  return fmt::format("{} -> {}", fmt::join(operands, ", "), result);
}

std::string layers_text(const std::string& block, const std::vector<i64>& numbers) {
  if (numbers.front() < 0) return block;
  return fmt::format("{} {} ({})", numbers.size() == 1 ? "layer" : "layers", ranges_text(numbers),
                     block);
}

/// Adds an op: one line per mesh axis or move, whichever are more.
void add_op(Table& table, const api::OpLine& line, const std::vector<size_t>& axes,
            const mesh::Mesh& mesh, bool timed) {
  const bool several = axes.size() > 1;
  for (size_t i = 0; i < std::max({axes.size(), line.moves.size(), size_t{1}}); ++i) {
    std::vector<std::string> cells{i == 0 ? line.op : "", i == 0 ? line.made : ""};
    if (several) cells.push_back(i < axes.size() ? mesh.axes()[axes[i]].name : "");
    cells.push_back(i < axes.size() ? row_text(line, axes[i]) : "");
    const api::OpMove* move = i < line.moves.size() ? &line.moves[i] : nullptr;
    cells.push_back(move == nullptr ? "" : move_text(*move, several));
    cells.push_back(move == nullptr ? "" : format_count(move->bytes));
    if (timed) {
      const bool is_timed = move != nullptr && move->payload > 0;
      cells.push_back(is_timed ? plan::format_modelled_us(move->us) : "");
    }
    table.rows.push_back(std::move(cells));
  }
}

void print_layers(Session& session, const api::OpPlanReport& report, const api::OpLayers& layers) {
  const auto axes = cutting_axes(report.mesh);
  const bool timed = !report.profile.empty();
  session.out().write(
      fmt::format("\n{}: {} bytes per device{}\n", layers_text(layers.block, layers.numbers),
                  format_count(layers.bytes), layers.numbers.size() > 1 ? " in each" : ""));
  Table table{{{"op"}, {"makes"}}, {}};
  if (axes.size() > 1) table.columns.push_back({"axis"});
  for (const char* title : {"runs as", "moves"}) table.columns.push_back({title});
  table.columns.push_back({"bytes", true});
  if (timed) table.columns.push_back({"time", true});
  for (const api::OpLine& line : layers.ops) add_op(table, line, axes, report.mesh, timed);
  print_table(session.out(), table, TableFormat::kText);
}

/// Adds a choice: one line per transfer.
void add_choice(Table& table, const plan::CandidateLine& choice) {
  const bool is_possible = choice.status != "infeasible";
  std::vector<std::string> reasons = is_possible ? choice.insert : std::vector{choice.why};
  if (reasons.empty()) reasons.emplace_back();
  table.rows.push_back({choice.axis,
                        fmt::format("{} -> {}", fmt::join(choice.operands, ", "), choice.result),
                        is_possible ? format_count(choice.bytes) : "",
                        choice.status.empty() ? "dearer" : choice.status, reasons.front()});
  for (size_t i = 1; i < reasons.size(); ++i) table.rows.push_back({"", "", "", "", reasons[i]});
}

/// Prints every choice of the ops that make a value.
void print_choices(Session& session, const api::OpPlanReport& report, const std::string& value) {
  std::vector<std::string> known;
  bool found = false;
  for (const api::OpLayers& layers : report.layers) {
    for (const api::OpLine& line : layers.ops) {
      known.push_back(line.made);
      if (line.made != value) continue;
      found = true;
      std::vector<std::string> operands;
      for (const api::OpOperand& operand : line.operands) operands.push_back(operand.name);
      session.out().write(fmt::format("\n{} '{}' of {}, operands {}\n", line.op, line.made,
                                      layers_text(layers.block, layers.numbers),
                                      fmt::join(operands, ", ")));
      Table table{{{"axis"}, {"choice"}, {"bytes", true}, {"status"}, {"insert, or why not"}}, {}};
      for (const plan::CandidateLine& choice : line.candidates) add_choice(table, choice);
      print_table(session.out(), table, TableFormat::kText);
    }
  }
  if (found) return;
  Error error(ErrorCode::kUnknownName,
              fmt::format("no op makes a value '{}'", quote_for_message(value)));
  const std::string hint = did_you_mean(value, known);
  throw std::move(error).help(hint.empty() ? "leave out --explain to list the ops" : hint);
}

void print_collectives(Session& session, const api::OpPlanReport& report) {
  const bool timed = !report.profile.empty();
  Table table{{{"collectives"}, {"axis"}, {"calls", true}, {"payload", true}, {"bytes", true}}, {}};
  if (timed) table.columns.push_back({"time of a call", true});
  for (const api::OpCollective& row : report.collectives) {
    table.rows.push_back({row.op, row.axes, format_count(row.count), format_count(row.payload),
                          format_count(row.bytes)});
    if (timed) table.rows.back().push_back(plan::format_modelled_us(row.us));
  }
  session.out().write("\n");
  if (!table.rows.empty()) print_table(session.out(), table, TableFormat::kText);
}

void print_comparison(Session& session, const api::OpPlanReport& report) {
  const api::OpComparison& comparison = *report.comparison;
  for (const api::OpDifference& op : comparison.ops) {
    session.out().write(
        fmt::format("\n{} '{}' of {}\n", op.op, op.made, layers_text(op.block, op.layers)));
    Table table{{{"plan"}, {"runs as"}, {"bytes", true}}, {}};
    table.rows.push_back({report.solver, op.chosen, format_count(op.chosen_bytes)});
    table.rows.push_back({"optimum", op.optimum, format_count(op.optimum_bytes)});
    print_table(session.out(), table, TableFormat::kText);
  }
  const i64 more = comparison.chosen_bytes - comparison.optimum_bytes;
  std::string text =
      fmt::format("{} bytes with {}, {} at best", format_count(comparison.chosen_bytes),
                  report.solver, format_count(comparison.optimum_bytes));
  if (comparison.optimum_bytes > 0 && more > 0) {
    text += fmt::format(": {:.1f}% more", 100.0 * static_cast<double>(more) /
                                              static_cast<double>(comparison.optimum_bytes));
  }
  session.out().write(labelled(session.out_style(), "compared", text));
}

}  // namespace

void print_text(Session& session, const api::OpPlanReport& report, const std::string& explain) {
  for (const std::string& warning : report.warnings) session.warn(warning);
  if (session.quiet()) return;
  const Style& style = session.out_style();
  std::string how = "solver " + report.solver;
  if (report.generation != "exact") how += ", generation " + report.generation;
  session.out().write(labelled(
      style, "ops",
      fmt::format("{} on {}, {} of {}, {}", report.family, to_string(report.mesh),
                  plural(report.batch, "sequence"), plural(report.prompt_len, "token"), how)));
  session.out().write(labelled(
      style, "axes", "of values: 0 sequences, 1 tokens, 2 features; of weights: as stored"));
  session.out().write(labelled(
      style, "places", "R whole, S(d) cut along axis d, P a summand; bytes received by a device"));
  if (!explain.empty()) return print_choices(session, report, explain);
  for (const api::OpLayers& layers : report.layers) print_layers(session, report, layers);
  print_collectives(session, report);
  if (report.comparison) print_comparison(session, report);
  std::string total = fmt::format("{} bytes received by a device", format_count(report.bytes));
  if (!report.profile.empty()) {
    total += fmt::format(", {} on {}", plan::format_modelled_us(report.us), report.profile);
  }
  session.out().write(labelled(style, "total", total));
}

}  // namespace shardtool::cli
