#include "cli/print/inspect_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/print/report/markdown.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr size_t kMaxPath = 4000;

/// "4096x4096", without commas and blanks, so that it is one cell in every format.
std::string shape_cell(const Shape& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

std::string axes_cell(const std::vector<api::InspectAxis>& axes) {
  std::string text;
  for (const auto& axis : axes) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", axis.logical, axis.expression);
  }
  return text;
}

Table tensor_table(const std::vector<api::InspectTensor>& tensors,
                   const std::vector<const InspectColumn*>& columns) {
  Table table;
  for (const auto* column : columns) {
    table.columns.push_back({std::string(column->name), column->right});
  }
  for (const auto& tensor : tensors) {
    auto& row = table.rows.emplace_back();
    for (const auto* column : columns) row.push_back(column->cell(tensor));
  }
  return table;
}

std::vector<const InspectColumn*> default_columns(bool placed) {
  std::vector<const InspectColumn*> columns;
  for (const auto& column : inspect_columns()) {
    const bool basic = column.name == "name" || column.name == "dtype" || column.name == "shape" ||
                       column.name == "bytes";
    const bool placement = column.name == "rule" || column.name == "axes";
    if (basic || (placed && placement)) columns.push_back(&column);
  }
  return columns;
}

Table group_table(std::string_view title, const std::vector<api::InspectGroup>& groups,
                  i64 all_bytes) {
  Table table{{{std::string(title)}, {"tensors", true}, {"bytes", true}, {"%", true}}, {}};
  for (const auto& group : groups) {
    const double percent =
        all_bytes == 0 ? 0
                       : 100 * static_cast<double>(group.bytes) / static_cast<double>(all_bytes);
    table.rows.push_back({group.name, format_count(group.tensors), format_bytes(group.bytes),
                          fmt::format("{:.1f}", percent)});
  }
  return table;
}

Table entry_table(const std::vector<api::InspectEntry>& entries) {
  Table table{{{"no tensor, left out"}, {"what"}}, {}};
  for (const auto& entry : entries) table.rows.push_back({entry.name, entry.what});
  return table;
}

/// "safetensors, 2 files, LlamaForCausalLM".
std::string form_text(const api::InspectReport& report) {
  auto text =
      fmt::format("{}, {} file{}", report.format, report.files, report.files == 1 ? "" : "s");
  const auto& model = report.architecture.empty() ? report.model_type : report.architecture;
  return model.empty() ? text : text + ", " + quote_for_message(model);
}

std::string config_text(const std::map<std::string, i64>& config) {
  std::string text;
  for (const auto& [name, value] : config)
    text += fmt::format("{}{} {}", text.empty() ? "" : "  ", name, value);
  return text;
}

std::string mesh_text(const api::InspectReport& report) {
  const auto& bytes = report.bytes_per_rank;
  auto text = to_string(*report.mesh);
  if (bytes.empty()) return text;
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  text += fmt::format("  {} ranks, {}", bytes.size(), format_bytes(*least));
  return text + (*least == *most ? " each" : fmt::format(" to {} each", format_bytes(*most)));
}

/// One row per rule, with its largest tensor as the example.
Table rules_table(const std::vector<api::DrawnRule>& rules) {
  Table table{{{"rule"}, {"tensors", true}, {"bytes", true}, {"axes"}, {"such as"}}, {}};
  for (const api::DrawnRule& rule : rules) {
    table.rows.push_back({rule.example.rule, format_count(rule.tensors), format_bytes(rule.bytes),
                          axes_cell(rule.example.axes), rule.example.name});
  }
  return table;
}

void print_summary(Session& session, const api::InspectReport& report, const InspectView& view) {
  auto& out = session.out();
  out.write(fmt::format("{}  ({})\n",
                        session.out_style().bold(quote_for_message(report.path, kMaxPath)),
                        form_text(report)));
  out.write(fmt::format("  parameters {}  tensors {}  bytes {} ({})\n",
                        format_count(report.parameters), format_count(report.tensors),
                        format_count(report.bytes), format_bytes(report.bytes)));
  if (!report.config.empty()) out.write("  " + config_text(report.config) + "\n");
  if (report.mesh) out.write("  mesh " + mesh_text(report) + "\n");
  if (view.by_dtype) {
    print_table(out, group_table("dtype", report.dtypes, report.bytes), TableFormat::kText);
  }
  if (view.by_module) {
    print_table(out, group_table("module", report.modules, report.bytes), TableFormat::kText);
  }
}

}  // namespace

const std::vector<InspectColumn>& inspect_columns() {
  using Tensor = api::InspectTensor;
  static const std::vector<InspectColumn> kColumns{
      {"name", false, [](const Tensor& tensor) { return tensor.name; }},
      {"dtype", false, [](const Tensor& tensor) { return tensor.dtype; }},
      {"shape", false, [](const Tensor& tensor) { return shape_cell(tensor.shape); }},
      {"bytes", true, [](const Tensor& tensor) { return fmt::format("{}", tensor.bytes); }},
      {"file", false, [](const Tensor& tensor) { return tensor.file; }},
      {"offset", true, [](const Tensor& tensor) { return fmt::format("{}", tensor.offset); }},
      {"rule", false, [](const Tensor& tensor) { return tensor.rule; }},
      {"strategy", false, [](const Tensor& tensor) { return tensor.strategy; }},
      {"axes", false, [](const Tensor& tensor) { return axes_cell(tensor.axes); }},
  };
  return kColumns;
}

std::string markdown(const api::InspectReport& report, const InspectView& view) {
  MarkdownReport out("shardtool inspect of " + report.path);
  out.fact("holds", fmt::format("{} parameters in {}, {}", format_count(report.parameters),
                                plural(report.tensors, "tensor"), format_bytes(report.bytes)));
  out.fact("format", form_text(report));
  if (!report.config.empty()) out.fact("config", config_text(report.config));
  if (report.mesh) out.fact("mesh", mesh_text(report));
  if (!report.preset.empty()) out.fact("suggested preset", report.preset);
  for (const std::string& warning : report.warnings) out.fact("warning", warning);
  if (!report.rules.empty()) out.table(rules_table(report.rules));
  if (view.by_dtype) out.table(group_table("dtype", report.dtypes, report.bytes));
  if (view.by_module) out.table(group_table("module", report.modules, report.bytes));
  return out.take();
}

void print_text(Session& session, const api::InspectReport& report, const InspectView& view) {
  for (const auto& warning : report.warnings) session.warn(warning);
  if (view.summary) print_summary(session, report, view);
  if (view.tensors) {
    const auto columns =
        view.columns.empty() ? default_columns(report.mesh.has_value()) : view.columns;
    print_table(session.out(), tensor_table(report.list, columns), view.format);
    const bool is_for_people = view.format == TableFormat::kText && view.columns.empty();
    if (is_for_people && !report.others.empty()) {
      print_table(session.out(), entry_table(report.others), TableFormat::kText);
    }
  }
  if (view.summary && !report.preset.empty() && !session.quiet()) {
    session.out().write(fmt::format("suggested preset: {}\n", report.preset));
  }
}

}  // namespace shardtool::cli
