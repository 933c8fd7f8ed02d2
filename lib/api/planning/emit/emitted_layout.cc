#include "lib/api/planning/emit/emitted_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shardtool::api {

EmittedLayout emitted_layout(const mapping::Resolution& resolution,
                             std::span<const TensorSpec> specs) {
  EmittedLayout layout{resolution.mesh, {}};
  for (const mapping::ResolvedTensor& tensor : resolution.tensors) {
    layout.tensors.push_back(
        {specs[tensor.tensor], {&tensor.layout->holders(), tensor.layout->ranks()}});
  }
  std::ranges::sort(layout.tensors, {}, [](const EmittedTensor& one) { return one.spec.name; });
  return layout;
}

EmittedLayout emitted_shards(const LogicalCheckpoint& source) {
  EmittedLayout layout{source.parts.front().manifest->mesh, {}};
  for (const LogicalTensor& tensor : source.tensors)
    layout.tensors.push_back({tensor.spec, {tensor.side.holders.get(), tensor.ranks}});
  std::ranges::sort(layout.tensors, {}, [](const EmittedTensor& one) { return one.spec.name; });
  return layout;
}

std::string model_name(const LogicalCheckpoint& source) {
  std::string path = source.parts.front().path;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

Error inexpressible(std::string_view program, const TensorSpec& tensor, const std::string& why) {
  return std::move(
      Error(ErrorCode::kUnsupported, fmt::format("{} cannot express a tensor: {}", program, why))
          .tensor(tensor.name)
          .note("dtype and shape",
                fmt::format("{} {}", to_string(tensor.dtype), shardtool::to_string(tensor.shape)))
          .help("choose another layout for it, or write the shards with `split` and move files"));
}

HoldingDevices::HoldingDevices(const mesh::Mesh& mesh, const EmittedTensor& tensor,
                               std::string_view program)
    : mesh_(mesh), tensor_(tensor), program_(program) {
  const size_t n_axes = mesh.axes().size();
  std::vector<std::set<i64>> seen(n_axes);
  std::map<mesh::Coordinate, size_t> holder_at;  // cells, row-major
  for (size_t h = 0; h < tensor.holders.ranks.size(); ++h) {
    const auto coordinate = mesh.coordinate(tensor.holders.ranks[h]);
    for (size_t axis = 0; axis < n_axes; ++axis) seen[axis].insert(coordinate[axis]);
    holder_at[coordinate] = h;
  }
  size_t box = 1;
  for (const auto& coordinates : seen) {
    coordinates_.emplace_back(coordinates.begin(), coordinates.end());
    box *= coordinates.size();
  }
  if (box != holder_at.size())
    throw inexpressible(program, tensor.spec, "the devices that hold it are no box of the mesh");
  for (const auto& [coordinate, holder] : holder_at) {
    ranks_.push_back(tensor.holders.ranks[holder]);
    holders_.push_back(static_cast<int>(holder));
  }
}

i64 HoldingDevices::index(size_t position, size_t axis) const {
  auto left = static_cast<i64>(position);
  for (size_t a = coordinates_.size(); --a > axis;) left /= count(a);
  return left % count(axis);
}

std::optional<size_t> HoldingDevices::cut_along(size_t axis) const {
  i64 stride = 1;
  for (size_t a = coordinates_.size(); --a > axis;) stride *= count(a);
  const index::HolderSet& set = *tensor_.holders.set;
  std::optional<size_t> cut;
  for (size_t position = 0; position < holders_.size(); ++position) {
    const i64 at = index(position, axis);
    if (at == 0) continue;
    const auto first = set.pick(holders_[position - static_cast<size_t>(at * stride)]);
    const auto mine = set.pick(holders_[position]);
    for (size_t dim = 0; dim < mine.size(); ++dim) {
      if (mine[dim] == first[dim] || cut == dim) continue;
      if (cut) {
        throw inexpressible(
            program_, tensor_.spec,
            fmt::format("mesh axis '{}' cuts several of its axes", mesh_.axes()[axis].name));
      }
      cut = dim;
    }
  }
  return cut;
}

}  // namespace shardtool::api
