#include "tests/support/generators.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace shardtool::gen {
namespace {

using layout::AxisExpr;
using layout::SplitRule;
using mesh::Mesh;
using mesh::Over;

bool coin() {
  return *rc::gen::arbitrary<bool>();
}

/// A position in [begin, end).
size_t position(size_t begin, size_t end) {
  return static_cast<size_t>(*between(static_cast<i64>(begin), static_cast<i64>(end) - 1));
}

/// Shuffles by drawing one element after another.
template <class T>
std::vector<T> shuffled(std::vector<T> values) {
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    std::swap(values[i], values[position(i, values.size())]);
  }
  return values;
}

/// Divides values into two groups.
template <class T>
std::pair<std::vector<T>, std::vector<T>> parted(const std::vector<T>& values) {
  std::pair<std::vector<T>, std::vector<T>> groups;
  for (const T& value : values) (coin() ? groups.first : groups.second).push_back(value);
  return groups;
}

/// Cut points from 0 to n that split it into `parts`.
std::vector<i64> cut_points(i64 n, i64 parts) {
  std::vector<i64> points{0, n};
  for (i64 i = 1; i < parts; ++i) points.push_back(*between(0, n));
  std::sort(points.begin(), points.end());
  return points;
}

i64 divisor_of(i64 n) {
  std::vector<i64> divisors;
  for (i64 d = 1; d <= n; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return *rc::gen::elementOf(divisors);
}

SplitRule any_uneven_rule() {
  return *rc::gen::element(layout::kBalanced, layout::kMiddle, layout::kCeil, layout::padded(1),
                           layout::padded(3), layout::padded(4));
}

SplitRule rule_for(i64 n, i64 parts) {
  return n % parts == 0 && coin() ? layout::kExact : any_uneven_rule();
}

/// Draws one expression; `depth` limits its nesting.
struct ExprSource {
  const Mesh& mesh;

  AxisExpr any(i64 n, const Over& directions, int depth) const {
    using Draw = AxisExpr (ExprSource::*)(i64, const Over&, int) const;
    static constexpr std::array<Draw, 9> kDraws{
        &ExprSource::whole,  &ExprSource::split, &ExprSource::cuts,
        &ExprSource::owners, &ExprSource::scale, &ExprSource::product,
        &ExprSource::concat, &ExprSource::nest,  &ExprSource::pad};
    const std::vector<Draw> draws(kDraws.begin(), depth == 0 ? kDraws.begin() + 4 : kDraws.end());
    return (this->*(*rc::gen::elementOf(draws)))(n, directions, depth - 1);
  }

  AxisExpr whole(i64 n, const Over&, int) const { return layout::whole(n); }
  AxisExpr split(i64 n, const Over& directions, int) const {
    const Over over = parted(directions).first;
    return layout::split(n, over, rule_for(n, extent(mesh, over)));
  }
  AxisExpr cuts(i64 n, const Over& directions, int) const {
    const Over over = parted(directions).first;
    return layout::cuts(cut_points(n, extent(mesh, over)), over);
  }
  AxisExpr owners(i64 n, const Over& directions, int) const {
    const Over over = parted(directions).first;
    std::vector<std::vector<i64>> owned(static_cast<size_t>(extent(mesh, over)));
    for (i64 unit = 0; unit < n; ++unit) {
      const size_t first = position(0, owned.size());
      const size_t second = position(0, owned.size());
      owned[first].push_back(unit);
      if (second != first && coin()) owned[second].push_back(unit);
    }
    for (auto& units : owned) units = shuffled(units);
    return layout::owners(n, owned, over);
  }
  AxisExpr scale(i64 n, const Over& directions, int depth) const {
    const i64 unit = n == 0 ? 2 : divisor_of(n);
    return AxisExpr(
        layout::Scale{std::make_shared<const AxisExpr>(any(n / unit, directions, depth)), unit});
  }
  AxisExpr product(i64 n, const Over& directions, int depth) const {
    const auto [outer, inner] = parted(directions);
    const i64 size = n == 0 ? 2 : divisor_of(n);
    return AxisExpr(layout::Product{std::make_shared<const AxisExpr>(any(n / size, outer, depth)),
                                    std::make_shared<const AxisExpr>(any(size, inner, depth))});
  }
  AxisExpr concat(i64 n, const Over& directions, int depth) const {
    const auto points = cut_points(n, *between(1, 3));
    std::vector<AxisExpr> sections;
    for (size_t i = 1; i < points.size(); ++i) {
      sections.push_back(any(points[i] - points[i - 1], directions, depth));
    }
    return AxisExpr(layout::Concat{sections});
  }
  AxisExpr nest(i64 n, const Over& directions, int depth) const {
    const auto [inner, over] = parted(directions);
    return layout::nest(any(n, inner, depth), over, any_uneven_rule());
  }
  AxisExpr pad(i64 n, const Over& directions, int depth) const {
    return layout::pad(any(n, directions, depth));
  }
};

/// Appends one mesh axis, whole or as a chain of sub-axes whose sizes multiply to it.
void append_directions(const mesh::MeshAxis& axis, Over& out) {
  if (coin()) {
    out.push_back({axis.name, 1, 0});
    return;
  }
  for (i64 pre = 1; pre < axis.size;) {
    std::vector<i64> sizes;
    for (i64 size = 2; pre * size <= axis.size; ++size) {
      if (axis.size % (pre * size) == 0) sizes.push_back(size);
    }
    const i64 size = *rc::gen::elementOf(sizes);
    out.push_back({axis.name, pre, size});
    pre *= size;
  }
}

}  // namespace

rc::Gen<i64> between(i64 low, i64 high) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<i64>(low, high + 1));
}

rc::Gen<index::AxisMap> axis_map(i64 local_size, i64 global_size) {
  return rc::gen::exec([=] {
    std::vector<index::Piece> pieces;
    const i64 attempts = *between(0, 6);
    for (i64 i = 0; i < attempts; ++i) {
      const i64 local = *between(0, local_size);
      const i64 global = *between(0, global_size);
      const i64 size = *between(0, std::min({local_size - local, global_size - global, i64{5}}));
      pieces.push_back({local, global, size});
      if (!index::AxisMap::make(local_size, global_size, pieces)) pieces.pop_back();
    }
    return index::AxisMap(local_size, global_size, pieces);
  });
}

rc::Gen<index::AxisMap> axis_map() {
  return rc::gen::exec([] {
    const i64 local_size = *between(0, 16);
    const i64 global_size = *between(0, 16);
    return *axis_map(local_size, global_size);
  });
}

rc::Gen<std::vector<i64>> permutation(i64 n) {
  return rc::gen::exec([n] {
    std::vector<i64> numbers(static_cast<size_t>(n));
    std::iota(numbers.begin(), numbers.end(), 0);
    return shuffled(numbers);
  });
}

rc::Gen<Mesh> mesh() {
  return rc::gen::exec([] {
    std::vector<mesh::MeshAxis> axes;
    i64 devices = 1;
    // Each axis is kept `times` times out of four; more axes leave fewer layouts without replicas.
    constexpr std::pair<const char*, i64> kNames[]{{"dp", 3}, {"tp", 3}, {"ep", 3}, {"pp", 1}};
    for (const auto& [name, times] : kNames) {
      const i64 size = *rc::gen::element<i64>(1, 2, 3, 4, 6, 8);
      if (devices * size > 24 || *between(0, 3) >= times) continue;
      axes.push_back({name, size});
      devices *= size;
    }
    const bool is_ordered = *between(0, 3) == 0;
    return Mesh(shuffled(axes), is_ordered ? *permutation(devices) : std::vector<i64>{});
  });
}

rc::Gen<Over> directions(const Mesh& mesh) {
  return rc::gen::exec([mesh] {
    Over out;
    for (const mesh::MeshAxis& axis : mesh.axes()) append_directions(axis, out);
    return shuffled(out);
  });
}

rc::Gen<AxisExpr> axis_expr(i64 n, const Mesh& mesh, const Over& directions) {
  return rc::gen::exec([=] { return ExprSource{mesh}.any(n, directions, 3); });
}

rc::Gen<Shape> shape() {
  return rc::gen::exec([] {
    Shape shape;
    const i64 rank = *rc::gen::weightedElement<i64>({{1, 0}, {4, 1}, {6, 2}, {3, 3}});
    for (i64 a = 0; a < rank; ++a) shape.push_back(*between(a == 0 ? 0 : 1, rank == 3 ? 6 : 12));
    return shape;
  });
}

rc::Gen<layout::Layout> layout(const Shape& shape) {
  return rc::gen::exec([shape] {
    const Mesh over = *mesh();
    Over left = *directions(over);
    std::vector<layout::LayoutAxis> axes;
    for (const i64 extent : shape) {
      auto [mine, others] = parted(left);
      left = std::move(others);
      axes.push_back({*axis_expr(extent, over, mine), 1, {}});
    }
    return layout::Layout(over, shape, axes);
  });
}

}  // namespace shardtool::gen
