#include "tests/support/reference.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ostream>

namespace shardtool::reference {
namespace {

using layout::AxisExpr;
using layout::SplitRule;
using mesh::Mesh;

/// The device's digit along one reference, found by visiting all devices. Devices with the same
/// major digit of the mesh axis share it.
i64 digit_along(const Mesh& mesh, const mesh::AxisRef& ref, i64 rank) {
  const auto axes = mesh.axes();
  const mesh::Coordinate coordinate = mesh.coordinate(rank);
  i64 at = 0;
  while (axes[static_cast<size_t>(at)].name != ref.axis) ++at;
  const i64 n = axes[static_cast<size_t>(at)].size;
  const i64 digit = coordinate[static_cast<size_t>(at)];
  if (ref.whole()) return digit;
  // View n devices as a row-major box [pre, size, minor]; the digit is the middle coordinate.
  const i64 minor = n / ref.pre / ref.size;
  for (i64 p = 0, device = 0; p < ref.pre; ++p) {
    for (i64 s = 0; s < ref.size; ++s) {
      for (i64 m = 0; m < minor; ++m, ++device) {
        if (device == digit) return s;
      }
    }
  }
  return -1;
}

i64 digit_along(const Mesh& mesh, const mesh::Over& over, i64 rank) {
  i64 index = 0;
  for (const auto& ref : over) index = index * extent(mesh, ref) + digit_along(mesh, ref, rank);
  return index;
}

/// Distributes n units to `parts` one at a time; entry k is part k. Padding units come last.
std::vector<Indices> deal(i64 n, i64 parts, SplitRule rule) {
  std::vector<Indices> dealt(static_cast<size_t>(parts));
  std::vector<i64> sizes(dealt.size(), 0);
  i64 total = n;
  if (rule.kind == SplitRule::Kind::kPadded) {
    while (total % rule.multiple != 0 || total % parts != 0) ++total;
  }
  if (rule.kind == SplitRule::Kind::kCeil) {
    i64 largest = 0;
    while (largest * parts < n) ++largest;
    i64 left = n;
    for (i64& size : sizes) left -= size = std::min(left, largest);
  } else if (rule.kind == SplitRule::Kind::kMiddle) {
    for (i64 unit = 0; unit + parts <= n; unit += parts) {
      for (i64& size : sizes) ++size;
    }
    for (i64 left = 0; left < n % parts; ++left)
      ++sizes[sizes.size() - 2 - static_cast<size_t>(left)];
  } else {
    for (i64 unit = 0; unit < total; ++unit) ++sizes[static_cast<size_t>(unit % parts)];
  }
  i64 next = 0;
  for (size_t part = 0; part < dealt.size(); ++part) {
    for (i64 i = 0; i < sizes[part]; ++i, ++next) dealt[part].push_back(next < n ? next : kPadding);
  }
  return dealt;
}

struct Evaluator {
  const Mesh& mesh;
  i64 rank;

  Indices operator()(const layout::Whole& e) const {
    Indices all(static_cast<size_t>(e.n));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  Indices operator()(const layout::Split& e) const { return part(e.n, e.over, e.rule); }
  Indices operator()(const layout::Cuts& e) const {
    const auto k = static_cast<size_t>(digit_along(mesh, e.over, rank));
    Indices held;
    for (i64 i = e.boundaries[k]; i < e.boundaries[k + 1]; ++i) held.push_back(i);
    return held;
  }
  Indices operator()(const layout::Owners& e) const {
    return e.owned[static_cast<size_t>(digit_along(mesh, e.over, rank))];
  }
  Indices operator()(const layout::Scale& e) const {
    Indices held;
    for (const i64 unit : held_indices(*e.of, mesh, rank)) {
      for (i64 j = 0; j < e.unit; ++j) {
        held.push_back(unit == kPadding ? kPadding : unit * e.unit + j);
      }
    }
    return held;
  }
  Indices operator()(const layout::Concat& e) const {
    Indices held;
    i64 begin = 0;
    for (const AxisExpr& section : e.sections) {
      for (const i64 i : held_indices(section, mesh, rank)) {
        held.push_back(i == kPadding ? kPadding : begin + i);
      }
      begin += section.size();
    }
    return held;
  }
  Indices operator()(const layout::Product& e) const {
    const Indices outer = held_indices(*e.outer, mesh, rank);
    const Indices inner = held_indices(*e.inner, mesh, rank);
    Indices held;
    for (const i64 o : outer) {
      for (const i64 i : inner)
        held.push_back(o == kPadding || i == kPadding ? kPadding : o * e.inner->size() + i);
    }
    return held;
  }
  Indices operator()(const layout::Nest& e) const {
    const Indices outer = held_indices(*e.of, mesh, rank);
    Indices held;
    for (const i64 i : part(static_cast<i64>(outer.size()), e.over, e.rule)) {
      held.push_back(i == kPadding ? kPadding : outer[static_cast<size_t>(i)]);
    }
    return held;
  }
  Indices operator()(const layout::Pad& e) const {
    size_t largest = 0;
    for (i64 r = 0; r < mesh.size(); ++r) {
      largest = std::max(largest, held_indices(*e.of, mesh, r).size());
    }
    Indices held = held_indices(*e.of, mesh, rank);
    held.resize(largest, kPadding);
    return held;
  }

  Indices part(i64 n, const mesh::Over& over, SplitRule rule) const {
    return deal(n, extent(mesh, over), rule)[static_cast<size_t>(digit_along(mesh, over, rank))];
  }
};

bool bit(const Bytes& data, i64 at) {
  return ((data[static_cast<size_t>(at / 8)] >> (at % 8)) & 1) != 0;
}

void set_bit(Bytes& data, i64 at, bool value) {
  auto& byte = data[static_cast<size_t>(at / 8)];
  const auto mask = static_cast<std::uint8_t>(1U << (at % 8));
  byte = static_cast<std::uint8_t>(value ? byte | mask : byte & ~mask);
}

}  // namespace

Indices indices(const index::AxisMap& map) {
  Indices out;
  for (i64 local = 0; local < map.local_size(); ++local) {
    i64 global = kPadding;
    for (const index::Piece& p : map.pieces()) {
      if (p.local <= local && local < p.local + p.size) global = p.global + (local - p.local);
    }
    out.push_back(global);
  }
  return out;
}

index::AxisMap map_of(const Indices& local_to_global, i64 global_size) {
  std::vector<index::Piece> pieces;
  for (size_t local = 0; local < local_to_global.size(); ++local) {
    if (local_to_global[local] == kPadding) continue;
    pieces.push_back({static_cast<i64>(local), local_to_global[local], 1});
  }
  return {static_cast<i64>(local_to_global.size()), global_size, std::move(pieces)};
}

Indices held_indices(const AxisExpr& expr, const Mesh& mesh, i64 rank) {
  return std::visit(Evaluator{mesh, rank}, expr.node());
}

Bytes zeros(i64 elements, int bits) {
  return Bytes(static_cast<size_t>(ceil_div(elements * bits, 8)));
}

Bytes numbered(i64 elements, int bits) {
  Bytes data = zeros(elements, bits);
  for (i64 e = 0; e < elements; ++e) {
    const auto value = (static_cast<std::uint64_t>(e) + 1) * 0x9e3779b97f4a7c15ULL;
    for (int b = 0; b < bits; ++b) set_bit(data, e * bits + b, ((value >> (63 - b)) & 1) != 0);
  }
  return data;
}

void copy_element(const Bytes& src, i64 from, Bytes& dst, i64 to, int bits) {
  if (bits % 8 == 0) {
    std::copy_n(src.begin() + from * bits / 8, bits / 8, dst.begin() + to * bits / 8);
    return;
  }
  for (int b = 0; b < bits; ++b) set_bit(dst, to * bits + b, bit(src, from * bits + b));
}

Bytes place(const index::Region& region, const Bytes& whole, int bits) {
  const Shape global = global_shape(region);
  std::vector<Indices> axes;
  for (const index::AxisMap& map : region) axes.push_back(indices(map));
  Bytes held = zeros(element_count(local_shape(region)).value(), bits);
  i64 at = 0;
  // Visits the local elements in order; `from` is the row-major number of the axes before `a`.
  const std::function<void(size_t, i64)> visit = [&](size_t a, i64 from) {
    if (a == axes.size()) {
      if (from != kPadding) copy_element(whole, from, held, at, bits);
      ++at;
      return;
    }
    for (const i64 i : axes[a]) {
      visit(a + 1, from == kPadding || i == kPadding ? kPadding : from * global[a] + i);
    }
  };
  visit(0, 0);
  return held;
}

void run(const index::StridedCopy& copy, const Bytes& src, Bytes& dst) {
  std::vector<i64> counts;
  for (const index::Loop& loop : copy.loops) counts.push_back(loop.count);
  for (const auto& tuple : tuples(counts)) {
    i64 from = copy.src;
    i64 to = copy.dst;
    for (size_t k = 0; k < tuple.size(); ++k) {
      from += tuple[k] * copy.loops[k].src_stride;
      to += tuple[k] * copy.loops[k].dst_stride;
    }
    for (i64 b = 0; b < copy.run; ++b) {
      dst.at(static_cast<size_t>(to + b)) = src.at(static_cast<size_t>(from + b));
    }
  }
}

std::vector<std::vector<i64>> tuples(std::span<const i64> sizes) {
  std::vector<std::vector<i64>> all{{}};
  for (const i64 size : sizes) {
    std::vector<std::vector<i64>> longer;
    for (const auto& tuple : all) {
      for (i64 i = 0; i < size; ++i) {
        longer.push_back(tuple);
        longer.back().push_back(i);
      }
    }
    all = std::move(longer);
  }
  return all;
}

i64 row_major(std::span<const i64> tuple, std::span<const i64> extents) {
  i64 number = 0;
  for (size_t a = 0; a < tuple.size(); ++a) number = number * extents[a] + tuple[a];
  return number;
}

}  // namespace shardtool::reference

namespace shardtool::index {
void showValue(const AxisMap& map, std::ostream& out) {
  out << map.local_size() << " of " << map.global_size() << ": " << to_string(map);
}
}  // namespace shardtool::index

namespace shardtool::mesh {
void showValue(const Mesh& mesh, std::ostream& out) {
  out << to_string(mesh);
}
}  // namespace shardtool::mesh

namespace shardtool::layout {
void showValue(const AxisExpr& expr, std::ostream& out) {
  out << to_string(expr);
}

void showValue(const Layout& layout, std::ostream& out) {
  out << shardtool::to_string(layout.shape()) << " over " << to_string(layout.mesh());
  for (const LayoutAxis& axis : layout.axes()) out << " | " << to_string(axis.expr);
}
}  // namespace shardtool::layout
