#include "lib/mesh/mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "lib/base/error.h"
#include "lib/base/json_writer.h"
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

bool parse_number(std::string_view digits, i64& number) {
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return failure == std::errc{} && end == digits.data() + digits.size();
}

MeshAxis parse_axis(std::string_view text) {
  const size_t equals = text.find('=');
  const auto name = text.substr(0, equals);
  const auto digits = equals == text.npos ? std::string_view{} : text.substr(equals + 1);
  i64 size = 0;
  if (!parse_number(digits, size) || name.empty() || size < 1) {
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' is not a mesh axis, expected name=size with a size of at least 1",
                            quote_for_message(text)))
        .help("write a mesh as tp=4 or ep=2,tp=4, the slowest axis first");
  }
  return {std::string(name), size};
}

i64 parse_device(std::string_view text) {
  i64 rank = 0;
  if (parse_number(text, rank)) return rank;
  throw Error(ErrorCode::kUsage,
              fmt::format("'{}' is not the rank of a device", quote_for_message(text)))
      .help("list the ranks of the mesh's cells, the last axis fastest: tp=4:0,2,1,3");
}

/// Parses what stands between commas.
template <class Value>
std::vector<Value> parse_list(std::string_view text, Value (*parse)(std::string_view)) {
  std::vector<Value> values;
  for (const std::string_view part : split_at(text, ",")) values.push_back(parse(part));
  return values;
}

/// Returns the inverse of a list of ranks. Throws kMesh if they are no permutation of 0 to size
/// - 1.
std::vector<i64> inverse(std::span<const i64> order, i64 size) {
  if (std::ssize(order) != size) {
    throw Error(ErrorCode::kMesh, fmt::format("the order of devices has {}, and the mesh {}",
                                              plural(std::ssize(order), "rank"), size));
  }
  constexpr i64 kNone = -1;
  std::vector<i64> cells(order.size(), kNone);
  for (i64 cell = 0; cell < size; ++cell) {
    const i64 rank = order[static_cast<size_t>(cell)];
    if (rank < 0 || rank >= size) {
      throw Error(ErrorCode::kMesh,
                  fmt::format("rank {} is listed, and the mesh has 0 to {}", rank, size - 1));
    }
    i64& place = cells[static_cast<size_t>(rank)];
    if (place != kNone) throw Error(ErrorCode::kMesh, fmt::format("rank {} is listed twice", rank));
    place = cell;
  }
  return cells;
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

Mesh::Mesh(std::vector<MeshAxis> axes, std::vector<i64> device_order) : Mesh(std::move(axes)) {
  if (device_order.empty()) return;
  cells_ = inverse(device_order, size_);
  device_order_ = std::move(device_order);
  if (!std::is_sorted(device_order_.begin(), device_order_.end())) return;
  device_order_.clear();  // one spelling of the ordinary order, so that equal meshes compare equal
  cells_.clear();
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
  i64 cell = this->cell(rank);
  for (size_t i = axes_.size(); i-- > at + 1;) cell /= axes_[i].size;
  return cell % axes_[at].size;
}

Coordinate Mesh::coordinate(i64 rank) const {
  Coordinate coordinate(axes_.size());
  i64 cell = this->cell(rank);
  for (size_t i = axes_.size(); i-- > 0;) {
    coordinate[i] = cell % axes_[i].size;
    cell /= axes_[i].size;
  }
  return coordinate;
}

i64 Mesh::rank(const Coordinate& coordinate) const {
  i64 cell = 0;
  for (size_t i = 0; i < axes_.size(); ++i) cell = cell * axes_[i].size + coordinate[i];
  return device_order_.empty() ? cell : device_order_[static_cast<size_t>(cell)];
}

std::string to_string(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  }
  if (!mesh.device_order().empty()) text += fmt::format(":{}", fmt::join(mesh.device_order(), ","));
  return text.empty() ? "one device" : text;
}

void write_mesh(JsonWriter& json, const Mesh& mesh) {
  json.key("mesh").begin_array();
  for (const MeshAxis& axis : mesh.axes()) {
    json.begin_object().field("axis", axis.name).field("size", axis.size).end_object();
  }
  json.end_array();
  if (!mesh.device_order().empty()) json.list("device_order", mesh.device_order());
}

Mesh parse_mesh(std::string_view text) {
  const size_t colon = text.find(':');
  auto axes = parse_list(text.substr(0, colon), parse_axis);
  if (colon == text.npos) return Mesh(std::move(axes));
  return {std::move(axes), parse_list(text.substr(colon + 1), parse_device)};
}

}  // namespace shardtool::mesh
