#include "lib/api/dequantize/code_box.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/digest/placed_crc64.h"
#include "lib/base/error.h"
#include "lib/exec/files/stored_box.h"
#include "lib/exec/shifted.h"
#include "lib/index/strided_copy.h"

namespace shardtool::api {
namespace {

constexpr CodeAxis kAxes[] = {CodeAxis::kOuter, CodeAxis::kRow, CodeAxis::kColumn};

i64 elements(const std::vector<i64>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), i64{1}, std::multiplies<>());
}

/// Index of the stored axis that follows an axis of the codes, or nullopt.
std::optional<size_t> axis_of(const StoredMember& member, CodeAxis axis) {
  for (size_t a = 0; a < member.axes.size(); ++a) {
    if (member.axes[a].of == axis) return a;
  }
  return std::nullopt;
}

/// Part of a stored tensor's digest that belongs to a box: an element belongs to the box that has
/// the first of its codes.
std::uint64_t digest_of(const StoredMember& member, const CodeBox& box, const MemberPart& part) {
  for (const CodeAxis axis : kAxes) {
    if (!axis_of(member, axis) && box.begin(axis) != 0) return 0;
  }
  const TensorSpec& spec = member.tensor.spec;
  std::vector<i64> skipped(part.begin.size(), 0);
  std::vector<i64> sizes = part.sizes;
  std::vector<i64> global = part.begin;
  for (size_t a = 0; a < sizes.size(); ++a) {
    if (member.axes[a].of == CodeAxis::kNone) continue;
    skipped[a] = ceil_div(box.begin(member.axes[a].of), member.axes[a].per) - part.begin[a];
    sizes[a] -= skipped[a];
    global[a] += skipped[a];
  }
  if (elements(sizes) <= 0) return 0;
  const auto place =
      index::lower(sizes, {skipped, part.sizes}, {global, spec.shape}, bits(spec.dtype));
  if (!place) throw Error(ErrorCode::kInternal, "stored elements that are not whole bytes");
  return kernels::placed_crc64(*place, part.bytes.data(), *byte_size(spec.dtype, spec.shape));
}

/// Original values of a vector of which devices have values of their own.
std::vector<std::byte> restored(const LogicalTensor& tensor,
                                std::span<const exec::SourceFile> files) {
  const TensorSpec& spec = tensor.spec;
  const auto values =
      exec::load_shifted(spec.name, spec.dtype, spec.shape, tensor.side, tensor.shifts, files);
  const auto width = static_cast<size_t>(bits(spec.dtype) / 8);
  std::vector<std::byte> bytes(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(bytes.data() + i * width, &values[i], width);
  return bytes;
}

}  // namespace

i64 CodeBox::begin(CodeAxis axis) const {
  return axis == CodeAxis::kOuter ? outer : axis == CodeAxis::kRow ? row : column;
}

i64 CodeBox::size(CodeAxis axis) const {
  return axis == CodeAxis::kOuter ? 1 : axis == CodeAxis::kRow ? rows : columns;
}

i64 MemberPart::first(const StoredMember& member, CodeAxis axis) const {
  const auto stored = axis_of(member, axis);
  return stored ? begin[*stored] : 0;
}

i64 MemberPart::count(const StoredMember& member, CodeAxis axis) const {
  const auto stored = axis_of(member, axis);
  return stored ? sizes[*stored] : 1;
}

i64 codes_per_index(const StoredMember& member, CodeAxis axis) {
  const auto stored = axis_of(member, axis);
  return stored ? member.axes[*stored].per : 0;
}

MemberPart read_member(const StoredMember& member, const CodeBox& box,
                       std::span<const exec::SourceFile> files, std::uint64_t& digest) {
  const TensorSpec& spec = member.tensor.spec;
  MemberPart part;
  for (size_t a = 0; a < member.axes.size(); ++a) {
    const auto [of, per] = member.axes[a];
    const bool is_free = of == CodeAxis::kNone;
    const i64 begin = is_free ? 0 : box.begin(of) / per;
    const i64 end = is_free ? spec.shape[a]
                            : std::min(ceil_div(box.begin(of) + box.size(of), per), spec.shape[a]);
    part.begin.push_back(begin);
    part.sizes.push_back(end - begin);
  }
  if (!member.tensor.shifts.empty()) {
    part.bytes = restored(member.tensor, files);
  } else {
    part.bytes.resize(static_cast<size_t>(elements(part.sizes) * bits(spec.dtype) / 8));
    exec::read_box(spec, member.tensor.side, part.begin, part.sizes, files, part.bytes);
  }
  digest ^= digest_of(member, box, part);
  return part;
}

}  // namespace shardtool::api
