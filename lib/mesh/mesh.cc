#include "lib/mesh/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::mesh {
namespace {

void check_axis(const MeshAxis& axis) {
  if (axis.name.empty()) throw Error(ErrorCode::kMesh, "a mesh axis has no name");
  if (axis.size < 1) {
    throw Error(ErrorCode::kMesh, fmt::format("mesh axis '{}' has size {}, expected 1 or more",
                                              axis.name, axis.size));
  }
}

MeshAxis parse_axis(std::string_view text) {
  const size_t equals = text.find('=');
  const auto name = text.substr(0, equals);
  const auto digits = equals == text.npos ? std::string_view{} : text.substr(equals + 1);
  i64 size = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  const bool parsed = failure == std::errc{} && end == digits.data() + digits.size();
  if (!parsed || name.empty() || size < 1) {
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' is not a mesh axis, expected name=size", quote_for_message(text)))
        .help("write a mesh as tp=4 or ep=2,tp=4, the slowest axis first");
  }
  return {std::string(name), size};
}

}  // namespace

Mesh::Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {
  for (size_t i = 0; i < axes_.size(); ++i) {
    check_axis(axes_[i]);
    const auto same_name = [&](const MeshAxis& other) { return other.name == axes_[i].name; };
    if (std::any_of(axes_.begin(), axes_.begin() + static_cast<std::ptrdiff_t>(i), same_name)) {
      throw Error(ErrorCode::kMesh, fmt::format("mesh axis '{}' appears twice", axes_[i].name));
    }
    const auto product = checked_mul(size_, axes_[i].size);
    if (!product || *product > kMaxDevices) {
      throw Error(ErrorCode::kMesh,
                  fmt::format("mesh axis '{}' of size {} makes more than {} devices", axes_[i].name,
                              axes_[i].size, format_count(kMaxDevices)));
    }
    size_ = *product;
  }
}

size_t Mesh::position(std::string_view name) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return i;
  }
  std::vector<std::string> names;
  for (const MeshAxis& axis : axes_) names.push_back(axis.name);
  Error error(ErrorCode::kUnknownName,
              fmt::format("the mesh {} has no axis '{}'", to_string(*this), name));
  const std::string hint = did_you_mean(name, names);
  if (hint.empty() && names.empty()) throw error;
  throw error.help(hint.empty() ? fmt::format("its axes are: {}", fmt::join(names, ", ")) : hint);
}

const MeshAxis& Mesh::axis(std::string_view name) const {
  return axes_[position(name)];
}

bool Mesh::has_axis(std::string_view name) const {
  return std::any_of(axes_.begin(), axes_.end(),
                     [name](const MeshAxis& axis) { return axis.name == name; });
}

i64 Mesh::index_on(std::string_view name, i64 rank) const {
  const size_t at = position(name);
  for (size_t i = axes_.size(); i-- > at + 1;) rank /= axes_[i].size;
  return rank % axes_[at].size;
}

Coordinate Mesh::coordinate(i64 rank) const {
  Coordinate coordinate(axes_.size());
  for (size_t i = axes_.size(); i-- > 0;) {
    coordinate[i] = rank % axes_[i].size;
    rank /= axes_[i].size;
  }
  return coordinate;
}

i64 Mesh::rank(const Coordinate& coordinate) const {
  i64 rank = 0;
  for (size_t i = 0; i < axes_.size(); ++i) rank = rank * axes_[i].size + coordinate[i];
  return rank;
}

std::string to_string(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  }
  return text.empty() ? "one device" : text;
}

Mesh parse_mesh(std::string_view text) {
  std::vector<MeshAxis> axes;
  while (true) {
    const size_t comma = text.find(',');
    axes.push_back(parse_axis(text.substr(0, comma)));
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  return Mesh(std::move(axes));
}

}  // namespace shardtool::mesh
