#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/api/planning/emit/emit.h"
#include "lib/base/dtype.h"

namespace shardtool::api {
namespace {

using nlohmann::json;

constexpr std::string_view kTorch = "DTensor";

constexpr std::pair<Dtype, const char*> kTorchTypes[] = {{Dtype::kF64, "float64"},
                                                         {Dtype::kF32, "float32"},
                                                         {Dtype::kF16, "float16"},
                                                         {Dtype::kBF16, "bfloat16"},
                                                         {Dtype::kF8E4M3, "float8_e4m3fn"},
                                                         {Dtype::kF8E5M2, "float8_e5m2"},
                                                         {Dtype::kF8E8M0, "float8_e8m0fnu"},
                                                         {Dtype::kI64, "int64"},
                                                         {Dtype::kI32, "int32"},
                                                         {Dtype::kI16, "int16"},
                                                         {Dtype::kI8, "int8"},
                                                         {Dtype::kU64, "uint64"},
                                                         {Dtype::kU32, "uint32"},
                                                         {Dtype::kU16, "uint16"},
                                                         {Dtype::kU8, "uint8"},
                                                         {Dtype::kBool, "bool"}};

std::string torch_type(const TensorSpec& spec) {
  const auto* found =
      std::ranges::find(kTorchTypes, spec.dtype, [](const auto& row) { return row.first; });
  if (found == std::end(kTorchTypes))
    throw inexpressible(kTorch, spec, fmt::format("it has no name for {}", to_string(spec.dtype)));
  return found->second;
}

/// Returns what torch.chunk leaves of an interval at one of n places.
index::Interval torch_chunk(const index::Interval& whole, i64 n, i64 place) {
  const i64 size = ceil_div(whole.size(), n);
  const i64 begin = std::min(whole.end, whole.begin + place * size);
  return {begin, std::min(whole.end, begin + size)};
}

/// Placements of one tensor on the mesh of the devices that hold it.
class TorchPlacement {
 public:
  TorchPlacement(const mesh::Mesh& mesh, const EmittedTensor& tensor)
      : mesh_(mesh), tensor_(tensor), devices_(mesh, tensor, kTorch) {
    for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
      if (devices_.count(axis) > 1) axes_.push_back(axis);
    }
    if (axes_.empty()) axes_.push_back(mesh.axes().size() - 1);
    for (const size_t axis : axes_) cuts_.push_back(devices_.cut_along(axis));
    check();
  }

  json mesh() const {
    json shape = json::array();
    json names = json::array();
    for (const size_t axis : axes_) {
      shape.push_back(devices_.count(axis));
      names.push_back(mesh_.axes()[axis].name);
    }
    return {{"ranks", devices_.ranks()}, {"shape", shape}, {"dim_names", names}};
  }

  json placements() const {
    json all = json::array();
    for (const auto& cut : cuts_)
      all.push_back(cut ? fmt::format("Shard({})", *cut) : "Replicate()");
    return all;
  }

 private:
  /// Throws unless the placements give every rank what the layout gives it.
  void check() const {
    const index::HolderSet& set = *tensor_.holders.set;
    for (size_t position = 0; position < devices_.ranks().size(); ++position) {
      const index::Region region = set.region(devices_.holders()[position]);
      for (size_t dim = 0; dim < region.size(); ++dim) {
        index::Interval given{0, tensor_.spec.shape[dim]};
        for (size_t a = 0; a < axes_.size(); ++a) {
          if (cuts_[a] == dim)
            given =
                torch_chunk(given, devices_.count(axes_[a]), devices_.index(position, axes_[a]));
        }
        check(region[dim], given, devices_.ranks()[position], dim);
      }
    }
  }

  void check(const index::AxisMap& map, const index::Interval& given, i64 rank, size_t dim) const {
    const auto begin = index::interval_begin(map);
    if (!begin) {
      throw inexpressible(kTorch, tensor_.spec,
                          fmt::format("rank {} has {} of axis {}, which is not one interval", rank,
                                      index::to_string(map), dim));
    }
    const bool is_empty = map.local_size() == 0 && given.size() == 0;
    if (is_empty || (*begin == given.begin && map.local_size() == given.size())) return;
    throw inexpressible(kTorch, tensor_.spec,
                        fmt::format("rank {} has {} of axis {}, and Shard would give it [{}, {})",
                                    rank, index::to_string(map), dim, given.begin, given.end));
  }

  const mesh::Mesh& mesh_;
  const EmittedTensor& tensor_;
  HoldingDevices devices_;
  std::vector<size_t> axes_;  ///< of the mesh, along which several devices hold the tensor
  std::vector<std::optional<size_t>> cuts_;  ///< by axes_
};

}  // namespace

std::string dtensor_json(const EmittedLayout& layout) {
  json meshes = json::array();
  std::map<std::string, size_t> numbers;
  json tensors = json::object();
  for (const EmittedTensor& tensor : layout.tensors) {
    const TorchPlacement placed(layout.mesh, tensor);
    const json mesh = placed.mesh();
    const auto [found, is_new] = numbers.try_emplace(mesh.dump(), meshes.size());
    if (is_new) meshes.push_back(mesh);
    tensors[tensor.spec.name] = {{"mesh", found->second},
                                 {"shape", tensor.spec.shape},
                                 {"dtype", torch_type(tensor.spec)},
                                 {"placements", placed.placements()}};
  }
  return json{{"format", "dtensor"}, {"meshes", meshes}, {"tensors", tensors}}.dump(1) + "\n";
}

}  // namespace shardtool::api
