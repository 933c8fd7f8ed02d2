#include "lib/api/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/mapping_choice.h"
#include "lib/api/tensor_view.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

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
  error.help(hint.empty() ? "`shardtool inspect` lists the tensors" : hint);
  throw error;
}

ExplainAxis explain_axis(const layout::LayoutAxis& axis, i64 extent, const mesh::Mesh& mesh) {
  const mesh::Over over = axes_used(axis.expr);
  return {axis.logical,
          to_string(axis.expr),
          to_string(over),
          extent,
          mapping::physical_axis_size(mesh, over),
          mapping::round_axis_for_partitioning(extent, mesh, over)};
}

std::string describe(const Place& place) {
  std::string text = place.file;
  if (place.line > 0) text += fmt::format(":{}:{}", place.line, place.column);
  if (!place.pointer.empty()) text += " " + place.pointer;
  return text;
}

}  // namespace

ExplainReport explain(const ExplainOptions& options) {
  const LogicalCheckpoint source = open_logical({options.source});
  const size_t wanted = find_tensor(source, options.tensor);
  const AppliedMapping applied = apply_mapping(over_own_mesh(source, options.mapping), source);
  ExplainReport report;
  report.tensor = describe_stored(source.tensors[wanted], source);
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
  report.rule_place = describe(resolved->by->rule_place);
  report.why = why(*resolved);
  report.alterations = resolved->by->transforms;
  const auto& axes = resolved->layout->axes();
  for (size_t a = 0; a < axes.size(); ++a) {
    report.axes.push_back(explain_axis(axes[a], report.tensor.shape[a], report.mesh));
  }
  return report;
}

}  // namespace shardtool::api
