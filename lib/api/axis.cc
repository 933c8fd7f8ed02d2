#include "lib/api/axis.h"

#include <fmt/format.h>

#include "lib/api/mapping/mapping_choice.h"
#include "lib/base/error.h"
#include "lib/mapping/mesh_choice.h"
#include "lib/mapping/resolve/axis_table.h"
#include "lib/mapping/resolve/cut_checks.h"
#include "lib/mapping/resolve/cut_ledger.h"

namespace shardtool::api {
namespace {

mapping::Mapping loaded(const MappingChoice& choice) {
  if (choice.path.empty() && choice.preset.empty()) {
    throw Error(ErrorCode::kUsage, "'axis' needs --mapping or --preset")
        .help("the mapping says how its axes are cut; `shardtool presets` lists the built-in ones");
  }
  const mapping::Mapping named = choice.path.empty() ? mapping::load_preset(choice.preset)
                                                     : mapping::load_mapping(choice.path);
  return with_typed_documents(named, choice);
}

i64 size_of(const AxisOptions& options, mapping::AxisTable& axes) {
  if (options.size) return *options.size;
  if (const auto declared = axes.declared_size(options.name)) return *declared;
  throw Error(ErrorCode::kUsage, fmt::format("the mapping gives axis '{}' no size", options.name))
      .help("give it with --size");
}

/// Returns the cut of the axis. Throws what split throws of it: kNotDivisible, kEmptyShard.
layout::AxisExpr checked_cut(const AxisOptions& options, i64 size, const mesh::Mesh& mesh,
                             mapping::AxisTable& axes) {
  const mapping::UnitCut& cut = axes.cut(options.name, size);
  mapping::CutLedger(axes, options.mapping.require_even).enter(cut);
  layout::Layout alone(mesh, {size}, {{cut.units, 1, options.name}}, {});
  mapping::checked(std::move(alone), Dtype::kU8, options.mapping.allow_empty_shards);
  return cut.units;
}

}  // namespace

AxisReport axis(const AxisOptions& options) {
  const mapping::Mapping mapping = loaded(options.mapping);
  const mesh::Mesh mesh = mapping::choose_mesh(mapping, resolve_options(options.mapping));
  std::optional<mapping::ModelConfig> config;
  if (!options.mapping.config.empty()) config = mapping::load_config(options.mapping.config);
  mapping::AxisTable axes(mapping, mesh, config ? &*config : nullptr, options.mapping.layout);
  axes.require(options.name, {mapping.own().name, 0, 0, "/axes"});
  const i64 size = size_of(options, axes);
  const mesh::Over& over = axes.over(options.name);
  const layout::AxisExpr cut =
      over.empty() ? layout::whole(size) : checked_cut(options, size, mesh, axes);
  AxisReport report;
  report.mesh = mesh;
  report.axis = explain_axis(options.name, cut, over, size, mesh);
  for (i64 rank = 0; rank < mesh.size(); ++rank) {
    report.slices.push_back(index::to_string(layout::evaluate(cut, mesh, rank)));
  }
  return report;
}

}  // namespace shardtool::api
