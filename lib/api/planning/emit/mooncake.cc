#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lib/api/planning/emit/emit.h"
#include "lib/base/dtype.h"
#include "lib/base/sha256.h"

namespace shardtool::api {
namespace {

using nlohmann::json;

constexpr std::string_view kMooncake = "mooncake";
/// In the order of its identities.
constexpr auto kMooncakeAxes = std::to_array<std::string_view>({"dp", "pp", "ep", "tp"});

/// Identity of a document: of its canonical text, which has sorted keys, no blanks and no
/// characters beyond ASCII.
std::string identity_of(const json& content) {
  return "sha256:" + sha256_hex(content.dump(-1, ' ', true));
}

/// The mesh axis of each of kMooncakeAxes; nullopt: there is none.
using AxisNumbers = std::array<std::optional<size_t>, kMooncakeAxes.size()>;

AxisNumbers axis_numbers(const mesh::Mesh& mesh) {
  AxisNumbers numbers;
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    const auto* found = std::ranges::find(kMooncakeAxes, mesh.axes()[axis].name);
    if (found == kMooncakeAxes.end()) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("mooncake has no mesh axis '{}'", mesh.axes()[axis].name))
          .help("it has dp, pp, ep and tp");
    }
    numbers[static_cast<size_t>(found - kMooncakeAxes.begin())] = axis;
  }
  return numbers;
}

/// Placement of one tensor.
class MooncakePlacement {
 public:
  MooncakePlacement(const mesh::Mesh& mesh, const AxisNumbers& axes, const EmittedTensor& tensor)
      : tensor_(tensor), devices_(mesh, tensor, kMooncake) {
    const TensorSpec& spec = tensor.spec;
    if (bits(spec.dtype) % 8 != 0) refuse("its elements are no whole bytes");
    if (spec.shape.empty()) refuse("it is a scalar");
    for (size_t a = 0; a < kMooncakeAxes.size(); ++a) {
      if (axes[a] && mesh.axes()[*axes[a]].size > 1)
        add_axis(kMooncakeAxes[a], *axes[a], mesh.axes()[*axes[a]].size);
    }
    check();
  }

  json descriptor() const {
    std::vector<i64> cuts;
    for (const json& axis : axes_) {
      if (axis.contains("dim")) cuts.push_back(axis.at("dim").get<i64>());
    }
    std::ranges::sort(cuts);
    if (std::ranges::adjacent_find(cuts) != cuts.end()) refuse("two mesh axes cut one of its axes");
    return {{"tensor_id", tensor_.spec.name},
            {"global_shape", tensor_.spec.shape},
            {"dtype", std::string(to_string(tensor_.spec.dtype))},
            {"itemsize", bits(tensor_.spec.dtype) / 8},
            {"shard_dims", cuts},
            {"layout_fingerprint", "row-major"},
            {"parallel_axes", axes_},
            {"layer_id", nullptr},
            {"expert_id", nullptr}};
  }

  /// Appends the boxes of every rank to the fragments of that rank.
  void add_fragments(const std::vector<json>& coordinates,
                     std::vector<std::vector<json>>& of_rank) const {
    for (size_t i = 0; i < devices_.ranks().size(); ++i) {
      const auto rank = static_cast<size_t>(devices_.ranks()[i]);
      add_boxes(tensor_.holders.set->region(devices_.holders()[i]), coordinates[rank], rank,
                of_rank[rank]);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw inexpressible(kMooncake, tensor_.spec, why);
  }

  void add_axis(std::string_view kind, size_t axis, i64 size) {
    const auto cut = devices_.cut_along(axis);
    const bool is_owned = devices_.count(axis) < size;
    if (cut && (is_owned || kind == "dp" || kind == "pp"))
      refuse(fmt::format("'{}' may not cut it", kind));
    if (cut && kind == "ep" && *cut != 0) refuse("'ep' may cut its first axis only");
    json of{{"semantics", cut        ? "split"
                          : is_owned ? "ownership"
                                     : "replicated"},
            {"kind", std::string(kind)}};
    if (cut) {
      of["dim"] = *cut;
      splits_.push_back(axis);
    }
    axes_.push_back(std::move(of));
  }

  /// Throws if the parts along the axes that cut are not the whole, each element once.
  void check() const {
    const index::HolderSet& set = *tensor_.holders.set;
    i64 replicas = std::ssize(devices_.ranks());
    for (const size_t axis : splits_) replicas /= devices_.count(axis);
    i64 elements = 0;
    for (const int holder : devices_.holders()) {
      const index::Region region = set.region(holder);
      const i64 held = image_size(region);
      if (held == 0) refuse("a device has no element of it");
      i64 local = 1;
      for (const index::AxisMap& map : region) local *= map.local_size();
      if (local != held) refuse("a device has padding");
      elements += held;
    }
    i64 whole = 1;
    for (const i64 size : tensor_.spec.shape) whole *= size;
    if (elements != replicas * whole) refuse("devices repeat shards along a part of a mesh axis");
  }

  /// Appends the boxes of a region: the products of the pieces of its axes.
  void add_boxes(const index::Region& region, const json& coordinate, size_t rank,
                 std::vector<json>& fragments) const {
    std::vector<size_t> at(region.size(), 0);
    for (size_t box = 0;; ++box) {
      json offset = json::array();
      json shape = json::array();
      i64 bytes = bits(tensor_.spec.dtype) / 8;
      for (size_t axis = 0; axis < region.size(); ++axis) {
        const index::Piece& piece = region[axis].pieces()[at[axis]];
        offset.push_back(piece.global);
        shape.push_back(piece.size);
        bytes *= piece.size;
      }
      fragments.push_back(
          {{"placement_fragment_id", fmt::format("{}/{:06}/{:06}", tensor_.spec.name, rank, box)},
           {"tensor_id", tensor_.spec.name},
           {"global_offset", offset},
           {"local_shape", shape},
           {"nbytes", bytes},
           {"rank", coordinate},
           {"aliases", json::array()}});
      size_t axis = region.size();
      while (axis > 0 && ++at[axis - 1] == region[axis - 1].pieces().size()) at[--axis] = 0;
      if (axis == 0) return;
    }
  }

  const EmittedTensor& tensor_;
  HoldingDevices devices_;
  json axes_ = json::array();
  std::vector<size_t> splits_;  ///< mesh axes that cut
};

json coordinate_of(const mesh::Mesh& mesh, const AxisNumbers& axes, i64 rank) {
  const auto coordinate = mesh.coordinate(rank);
  json of = json::object();
  for (size_t a = 0; a < kMooncakeAxes.size(); ++a)
    of[std::string(kMooncakeAxes[a])] = axes[a] ? coordinate[*axes[a]] : 0;
  return of;
}

}  // namespace

std::string mooncake_json(const EmittedLayout& layout, const std::string& model) {
  const AxisNumbers axes = axis_numbers(layout.mesh);
  std::vector<json> coordinates;
  json topology = json::object();
  for (size_t a = 0; a < kMooncakeAxes.size(); ++a) {
    topology[fmt::format("{}_size", kMooncakeAxes[a])] =
        axes[a] ? layout.mesh.axes()[*axes[a]].size : 1;
  }
  json participants = json::array();
  for (i64 rank = 0; rank < layout.mesh.size(); ++rank) {
    coordinates.push_back(coordinate_of(layout.mesh, axes, rank));
    participants.push_back(
        {{"participant_id", fmt::format("rank-{:06}", rank)}, {"rank", coordinates.back()}});
  }
  topology["participants"] = participants;
  json named = topology;
  named["schema"] = "weight-parallel-topology";
  topology["topology_id"] = identity_of(named);

  json tensors = json::array();
  std::vector<std::vector<json>> fragments(coordinates.size());
  for (const EmittedTensor& tensor : layout.tensors) {
    const MooncakePlacement placed(layout.mesh, axes, tensor);
    tensors.push_back(placed.descriptor());
    placed.add_fragments(coordinates, fragments);
  }
  json parts = json::array();
  for (size_t rank = 0; rank < fragments.size(); ++rank) {
    std::ranges::sort(fragments[rank], {}, [](const json& one) {
      return one.at("placement_fragment_id").get<std::string>();
    });
    parts.push_back({{"participant_id", participants[rank].at("participant_id")},
                     {"rank", coordinates[rank]},
                     {"fragments", fragments[rank]}});
  }
  json placement{{"resource_id", model},   {"revision", "0"},
                 {"weight_generation", 0}, {"placement_set_id", to_string(layout.mesh)},
                 {"topology", topology},   {"tensors", tensors},
                 {"parts", parts}};
  json identity = placement;
  identity["schema"] = "complete-weight-placement";
  placement["placement_id"] = identity_of(identity);
  placement["resource_kind"] = "model_weight";
  return placement.dump(1, ' ', true) + "\n";
}

}  // namespace shardtool::api
