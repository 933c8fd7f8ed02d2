#include "lib/mesh/axis_ref.h"

#include <fmt/format.h>

#include <charconv>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::mesh {
namespace {

/// Devices below one step of the reference: n / (pre * size).
i64 minor_extent(const Mesh& mesh, const AxisRef& ref) {
  return ref.whole() ? 1 : mesh.axis(ref.axis).size / extent(mesh, ref) / ref.pre;
}

std::optional<i64> parse_positive(std::string_view digits) {
  i64 value = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool parsed = failure == std::errc{} && end == digits.data() + digits.size();
  if (!parsed || value < 1) return std::nullopt;
  return value;
}

}  // namespace

std::string to_string(const AxisRef& ref) {
  return ref.whole() ? ref.axis : fmt::format("{}:({}){}", ref.axis, ref.pre, ref.size);
}

std::string to_string(const Over& over) {
  std::string text;
  for (const AxisRef& ref : over) text += (text.empty() ? "" : "*") + to_string(ref);
  return text.empty() ? "nothing" : text;
}

AxisRef parse_axis_ref(std::string_view text) {
  const size_t colon = text.find(":(");
  if (colon == text.npos && !text.empty()) return {std::string(text), 1, 0};
  const size_t close = text.find(')', colon);
  if (close != text.npos && colon > 0) {
    const auto pre = parse_positive(text.substr(colon + 2, close - colon - 2));
    const auto size = parse_positive(text.substr(close + 1));
    if (pre && size) return {std::string(text.substr(0, colon)), *pre, *size};
  }
  throw Error(ErrorCode::kMappingSchema,
              fmt::format("'{}' is not a mesh axis", quote_for_message(text)))
      .help("write a mesh axis as tp, or a part of it as tp:(1)4");
}

i64 extent(const Mesh& mesh, const AxisRef& ref) {
  const MeshAxis& axis = mesh.axis(ref.axis);
  if (ref.whole()) return axis.size;
  const auto product = checked_mul(ref.pre, ref.size);
  if (!product || *product < 1 || axis.size % *product != 0) {
    throw Error(ErrorCode::kMesh, fmt::format("'{}' is not a part of mesh axis '{}' of size {}",
                                              to_string(ref), axis.name, axis.size))
        .help("in axis:(pre)size the product pre * size must divide the size of the axis");
  }
  return ref.size;
}

i64 extent(const Mesh& mesh, const Over& over) {
  i64 parts = 1;
  for (const AxisRef& ref : over) parts *= extent(mesh, ref);
  return parts;
}

i64 index_along(const Mesh& mesh, const AxisRef& ref, i64 rank) {
  if (ref.whole()) return mesh.index_on(ref.axis, rank);
  return mesh.index_on(ref.axis, rank) / minor_extent(mesh, ref) % extent(mesh, ref);
}

i64 index_along(const Mesh& mesh, const Over& over, i64 rank) {
  i64 index = 0;
  for (const AxisRef& ref : over) index = index * extent(mesh, ref) + index_along(mesh, ref, rank);
  return index;
}

bool overlaps(const Mesh& mesh, const AxisRef& a, const AxisRef& b) {
  if (a.axis != b.axis) return false;
  if (a.whole() || b.whole())
    return true;  // also on an axis of size 1: another mesh may have a
                  // larger one
  const i64 a_minor = minor_extent(mesh, a);
  const i64 b_minor = minor_extent(mesh, b);
  const i64 a_major = a_minor * extent(mesh, a);
  const i64 b_major = b_minor * extent(mesh, b);
  return a_minor % b_major != 0 && b_minor % a_major != 0;
}

std::optional<Over> leading(const Mesh& mesh, const Over& over, i64 parts) {
  Over kept;
  for (const AxisRef& ref : over) {
    const i64 size = extent(mesh, ref);
    if (parts % size == 0) {
      kept.push_back(ref);
      parts /= size;
      continue;
    }
    if (size % parts != 0) return std::nullopt;
    if (parts > 1) kept.push_back({ref.axis, ref.whole() ? 1 : ref.pre, parts});
    return kept;
  }
  if (parts != 1) return std::nullopt;
  return kept;
}

}  // namespace shardtool::mesh
