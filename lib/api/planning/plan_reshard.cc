#include "lib/api/planning/plan_reshard.h"

#include "lib/base/error.h"

namespace shardtool::api {
namespace {

/// Returns the named layout. A mapping file has its own mesh, and only `axes` of its layouts.
MappingChoice named(const std::string& name, const MappingChoice& base, const std::string& axes,
                    const LogicalCheckpoint& source) {
  MappingChoice choice = at_layout(base, name, source);
  if (!names_file(name)) return choice;
  choice.layout = axes;
  choice.mesh.reset();
  return choice;
}

/// Returns true if the options say that a reshard of shards begins elsewhere than at the shards.
bool begins_elsewhere(const LogicalCheckpoint& source, const PlanOptions& options) {
  if (options.from) return true;
  if (!options.mapping_is_given) return false;
  const MappingChoice& typed = options.mapping;
  const bool has_axes_alone = typed.path.empty() && typed.preset.empty() && !typed.mesh;
  const bool names_end = options.to && !names_file(*options.to);
  return !source.is_sharded() || !has_axes_alone || names_end;
}

plan::Holders holders_of(const layout::Layout& layout) {
  return {&layout.holders(), layout.ranks()};
}

/// Returns the holders of each tensor of the source; null if the mapping drops it.
std::vector<plan::Holders> sides_of(const LogicalCheckpoint& source, const AppliedMapping* from) {
  if (from != nullptr) return resolved_holders(from->resolution, source.tensors.size());
  std::vector<plan::Holders> sides(source.tensors.size());
  for (size_t t = 0; t < source.tensors.size(); ++t) {
    sides[t] = {source.tensors[t].side.holders.get(), source.tensors[t].ranks};
  }
  return sides;
}

i64 devices_of(const LogicalCheckpoint& source, const AppliedMapping* from) {
  if (from != nullptr) return from->resolution.mesh.size();
  return source.is_sharded() ? source.parts.front().manifest->mesh.size() : 0;
}

}  // namespace

std::vector<plan::Holders> resolved_holders(const mapping::Resolution& resolution, size_t tensors) {
  std::vector<plan::Holders> holders(tensors);
  for (const mapping::ResolvedTensor& tensor : resolution.tensors)
    holders[tensor.tensor] = holders_of(*tensor.layout);
  return holders;
}

MappingChoice base_choice(const LogicalCheckpoint& source, const MappingChoice& typed) {
  MappingChoice choice = over_own_mesh(source, typed);
  // A preset has no mesh. Use one device unless a mesh is given.
  if (!source.is_sharded() && choice.path.empty() && !choice.mesh)
    choice.mesh = mesh::Mesh({{"tp", 1}});
  return choice;
}

ReshardEnds reshard_ends(const LogicalCheckpoint& source, const PlanOptions& options) {
  const MappingChoice base = base_choice(source, options.mapping);
  ReshardEnds ends;
  ends.to = base;
  if (begins_elsewhere(source, options)) ends.from = base;
  const std::string axes = ends.from ? "" : base.layout;
  if (options.from) ends.from = named(*options.from, base, "", source);
  if (options.to) ends.to = named(*options.to, base, axes, source);
  if (!options.to_preset.empty()) {
    ends.to.path.clear();
    ends.to.preset = options.to_preset;
    ends.to.mesh.reset();
  }
  if (options.to_mesh) ends.to.mesh = options.to_mesh;
  if (ends.from) ends.from->engine_layout.clear();
  return ends;
}

plan::ReshardPlan plan_move(std::span<const LogicalTensor> tensors, const MoveStart& start,
                            const mapping::Resolution& to, const PlanOptions& options) {
  std::vector<plan::ReshardTensor> moved;
  moved.reserve(to.tensors.size());
  for (const mapping::ResolvedTensor& target : to.tensors) {
    const TensorSpec& spec = tensors[target.tensor].spec;
    if (start.holders[target.tensor].set == nullptr) {
      throw Error(ErrorCode::kCoverage, "the layout that the reshard begins at drops this tensor")
          .tensor(spec.name)
          .help("drop it in the destination's mapping, too");
    }
    moved.push_back(
        {spec.name, bits(spec.dtype), start.holders[target.tensor], holders_of(*target.layout)});
  }
  plan::TrafficOptions ask;
  ask.from_devices = start.devices;
  ask.to_devices = to.mesh.size();
  ask.node_size = options.node_size;
  ask.boxes = options.boxes;
  if (options.hardware && options.hardware->storage)
    ask.most_gap = plan::cheapest_gap(*options.hardware->storage);
  return plan::plan_reshard(moved, ask);
}

plan::ReshardPlan plan_move(const LogicalCheckpoint& source, const AppliedMapping* from,
                            const AppliedMapping& to, const PlanOptions& options) {
  return plan_move(source.tensors, {sides_of(source, from), devices_of(source, from)},
                   to.resolution, options);
}

}  // namespace shardtool::api
