#include "lib/mapping/mesh_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace shardtool::mapping {
namespace {

/// Name by which an axis of the command line has the role of this name.
constexpr std::string_view kGatheredName = "fsdp";

const Document& nearest_mesh(const Mapping& mapping) {
  for (const Document& document : mapping.documents()) {
    if (!document.mesh.empty()) return document;
  }
  throw Error(ErrorCode::kMesh, "neither the mapping nor the command line has a mesh")
      .help("give one with --mesh tp=4, or write \"mesh\": [{\"axis\": \"tp\", \"size\": 4}]");
}

/// Writes the mesh as a command line does, with N for the size that is not known.
std::string typed_mesh(const std::vector<MeshAxisSpec>& axes) {
  std::string text;
  for (const MeshAxisSpec& axis : axes) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.axis,
                        axis.size ? std::to_string(*axis.size) : "N");
  }
  return text;
}

/// Returns the size that a document gives to an axis.
i64 size_of(const MeshAxisSpec& axis, const std::vector<MeshAxisSpec>& all) {
  if (axis.size) return *axis.size;
  throw Error(ErrorCode::kMesh, fmt::format("the size of mesh axis '{}' is \"auto\"", axis.axis))
      .at(axis.place)
      .help("say how many devices there are: --mesh " + typed_mesh(all));
}

mesh::Mesh mesh_of(const Document& document) {
  const std::vector<MeshAxisSpec>& specs = document.mesh;
  std::vector<mesh::MeshAxis> axes;
  for (const MeshAxisSpec& spec : specs) axes.push_back({spec.axis, size_of(spec, specs)});
  const DeviceOrderSpec& order = document.device_order;
  Place place = specs.front().place;
  try {
    const mesh::Mesh mesh(axes);
    if (order.ranks.empty()) return mesh;
    place = order.place;
    return {std::move(axes), order.ranks};
  } catch (Error& e) {
    throw e.at(place);
  }
}

/// The file's own mesh with the sizes that the command line gives: "x=2,y=3". Where the file has
/// one axis, it takes the devices of an axis of another name.
std::string own_mesh(const Document& own, const mesh::Mesh& given) {
  std::vector<mesh::MeshAxis> axes;
  for (const MeshAxisSpec& spec : own.mesh) {
    const i64 other = own.mesh.size() == 1 ? given.size() : spec.size.value_or(1);
    axes.push_back({spec.axis, given.has_axis(spec.axis) ? given.axis(spec.axis).size : other});
  }
  return to_string(mesh::Mesh(std::move(axes)));
}

/// Throws kUnknownName if the mesh of the command line lacks an axis of the file's own mesh over
/// which the file cuts: then the command line is wrong, not the file.
void require_own_axes(const Mapping& mapping, const mesh::Mesh& mesh) {
  const Document& own = mapping.own();
  if (own.may_lack_axes && mesh.axes().empty()) return;  // one device names no axis
  const auto is_own = [&](const std::string& name) {
    return std::any_of(own.mesh.begin(), own.mesh.end(),
                       [&](const MeshAxisSpec& axis) { return axis.axis == name; });
  };
  for (const auto& [name, spec] : own.axes) {
    for (const mesh::AxisRef& ref : spec.mesh ? spec.mesh->over : mesh::Over{}) {
      if (mesh.has_axis(ref.axis) || !is_own(ref.axis)) continue;
      throw Error(ErrorCode::kUnknownName,
                  fmt::format("the mesh {} of the command line has no axis '{}', over which the "
                              "mapping cuts '{}'",
                              to_string(mesh), ref.axis, name))
          .at(spec.mesh->place)
          .help(fmt::format("name the mapping's axes: --mesh {}", own_mesh(own, mesh)));
    }
  }
}

}  // namespace

std::vector<std::string> gathered_axes(const Mapping& mapping, const mesh::Mesh& mesh) {
  const auto documents = mapping.documents();
  const auto nearest = std::ranges::find_if(
      documents, [](const Document& document) { return !document.mesh.empty(); });
  const auto is_gathered = [&](const std::string& axis) {
    const auto specs =
        nearest == documents.end() ? std::span<const MeshAxisSpec>() : std::span(nearest->mesh);
    const auto spec = std::ranges::find(specs, axis, &MeshAxisSpec::axis);
    return spec == specs.end() ? axis == kGatheredName : spec->is_gathered;
  };
  std::vector<std::string> gathered;
  for (const mesh::MeshAxis& axis : mesh.axes()) {
    if (is_gathered(axis.name)) gathered.push_back(axis.name);
  }
  return gathered;
}

mesh::Mesh choose_mesh(const Mapping& mapping, const ResolveOptions& options) {
  if (!options.mesh) return mesh_of(nearest_mesh(mapping));
  if (options.layout.empty()) require_own_axes(mapping, *options.mesh);
  return *options.mesh;
}

}  // namespace shardtool::mapping
