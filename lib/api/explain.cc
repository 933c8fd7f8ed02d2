#include "lib/api/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/tensor_view.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/resolve/cut_checks.h"

namespace shardtool::api {
namespace {

size_t find_tensor(const LogicalCheckpoint& source, const std::string& name) {
  std::vector<std::string> names;
  for (size_t t = 0; t < source.tensors.size(); ++t) {
    if (source.tensors[t].spec.name == name) return t;
    names.push_back(source.tensors[t].spec.name);
  }
  Error error(ErrorCode::kUnknownName,
              fmt::format("the checkpoint has no tensor '{}'", quote_for_message(name)));
  const std::string hint = did_you_mean(name, names);
  error.help(hint.empty() ? "`shardtool inspect SRC --tensors` lists the tensors" : hint);
  throw error;
}

}  // namespace

ExplainAxis explain_axis(std::string logical, const layout::AxisExpr& expr, const mesh::Over& over,
                         i64 extent, const mesh::Mesh& mesh) {
  const i64 devices = mesh::extent(mesh, over);
  // The expression of a companion counts the indices of the tensor that it follows.
  const i64 padded = mapping::padded_size(expr, mesh);
  const bool is_padded = padded > expr.size() && extent > 0;
  const i64 rounded =
      is_padded ? ceil_div(padded, ceil_div(expr.size(), extent)) : round_up(extent, devices);
  return {std::move(logical), to_string(expr), to_string(over), extent, devices, rounded, false};
}

ExplainReport explain(const ExplainOptions& options) {
  const LogicalCheckpoint source = open_logical({options.source}, {.mapping = options.mapping});
  const size_t wanted = find_tensor(source, options.tensor);
  const AppliedMapping applied = apply_mapping(over_own_mesh(source, options.mapping), source);
  ExplainReport report;
  report.tensor = describe_stored(source.tensors[wanted], source);
  report.part_of = source.tensors[wanted].part_of;
  report.mesh = applied.resolution.mesh;
  const auto& all = applied.resolution.tensors;
  const auto resolved = std::find_if(all.begin(), all.end(),
                                     [&](const auto& tensor) { return tensor.tensor == wanted; });
  if (resolved == all.end()) {
    report.rule = "drop";
    report.why = "a pattern of \"drop\" matches it: no device gets it";
    return report;
  }
  describe_resolved(report.tensor, *resolved);
  const auto& manifest = source.parts.front().manifest;
  if (manifest && manifest->mesh == report.mesh) {
    name_files(report.tensor, source.tensors[wanted], source);
  }
  report.rule = resolved->by->rule;
  report.rule_place = mapping::describe(resolved->by->rule_place);
  report.why = why(*resolved);
  report.alterations = resolved->by->transforms;
  const auto& axes = resolved->layout->axes();
  for (size_t a = 0; a < axes.size(); ++a) {
    const layout::AxisExpr& expr = axes[a].expr;
    report.axes.push_back(
        explain_axis(axes[a].logical, expr, axes_used(expr), report.tensor.shape[a], report.mesh));
    report.axes.back().has_copies =
        resolved->layout->refinement()[a] > 1 || axes[a].fill == layout::Fill::kRepeatLast;
  }
  return report;
}

}  // namespace shardtool::api
