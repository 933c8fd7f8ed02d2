#include "lib/api/tensor_view.h"

#include <climits>
#include <map>

#include "lib/api/transfer/target_layout.h"
#include "lib/layout/sections.h"

namespace shardtool::api {
namespace {

void add_shard(InspectTensor& tensor, i64 rank, index::Region region) {
  const i64 bytes = byte_size(*parse_dtype(tensor.dtype), local_shape(region)).value_or(0);
  tensor.shards.push_back({rank, bytes, std::move(region)});
}

/// Sections of an axis, if their borders are borders of stored elements.
std::vector<InspectSection> sections_of(const layout::LayoutAxis& axis,
                                        const std::vector<std::string>& names) {
  std::vector<InspectSection> sections;
  for (const i64 begin : layout::section_begins(axis.expr)) {
    if (begin % axis.granularity != 0) return {};
    sections.push_back({begin / axis.granularity, ""});
  }
  for (size_t s = 0; names.size() == sections.size() && s < names.size(); ++s)
    sections[s].name = names[s];
  return sections;
}

std::string file_of(const exec::Slot& slot, const LogicalCheckpoint& source) {
  const std::string& path = source.files[static_cast<size_t>(slot.file)].path;
  return path.substr(path.rfind('/') + 1);
}

/// Bytes before a tensor's first element in the slot of its first holder: a stored tensor may hold
/// others in front of it.
i64 first_element_at(const LogicalTensor& tensor) {
  const index::HolderSet& holders = *tensor.side.holders;
  const auto picked = holders.pick(0);
  i64 element = 0;
  for (int axis = 0; axis < holders.rank(); ++axis) {
    const auto a = static_cast<size_t>(axis);
    const index::AxisMap& map = holders.maps(axis)[static_cast<size_t>(picked[a])];
    const auto local = map(0) == 0 ? 0 : inverse(map)(0);  // most tensors begin where they lie
    if (!local) return 0;
    element = element * map.local_size() + *local;
  }
  return element * bits(tensor.stored_dtype()) / CHAR_BIT;
}

}  // namespace

InspectTensor describe_stored(const LogicalTensor& tensor, const LogicalCheckpoint& source) {
  InspectTensor view;
  view.name = tensor.spec.name;
  view.dtype = to_string(tensor.spec.dtype);
  view.shape = tensor.spec.shape;
  view.bytes = byte_size(tensor.spec.dtype, view.shape).value_or(0);
  if (!tensor.side.slots.empty()) {
    const exec::Slot& slot = tensor.side.slots.front();
    view.file = file_of(slot, source);
    view.offset = slot.offset + first_element_at(tensor);
  }
  return view;
}

void describe_resolved(InspectTensor& tensor, const mapping::ResolvedTensor& resolved) {
  tensor.rule = resolved.by->rule;
  tensor.strategy = resolved.by->strategy;
  for (const format::AxisRecord& axis : axis_records(resolved)) {
    tensor.axes.push_back({axis.logical, axis.expression});
  }
  const auto& axes = resolved.layout->axes();
  for (size_t a = 0; a < axes.size(); ++a)
    tensor.axes[a].sections = sections_of(axes[a], resolved.by->sections);
  const auto& ranks = resolved.layout->ranks();
  for (size_t h = 0; h < ranks.size(); ++h) {
    add_shard(tensor, ranks[h], resolved.layout->holders().region(static_cast<int>(h)));
  }
}

void name_files(InspectTensor& tensor, const LogicalTensor& logical,
                const LogicalCheckpoint& source) {
  std::map<i64, std::string> files;
  for (size_t h = 0; h < logical.ranks.size(); ++h) {
    files.emplace(logical.ranks[h], file_of(logical.side.slots[h], source));
  }
  for (InspectShard& shard : tensor.shards) shard.file = files[shard.rank];
}

void describe_recorded(InspectTensor& tensor, const LogicalTensor& logical) {
  tensor.rule = logical.record()->cut->rule;
  for (const format::AxisRecord& axis : logical.record()->cut->axes) {
    tensor.axes.push_back({axis.logical, axis.expression});
  }
  for (size_t h = 0; h < logical.ranks.size(); ++h) {
    add_shard(tensor, logical.ranks[h], logical.side.holders->region(static_cast<int>(h)));
  }
}

}  // namespace shardtool::api
