#include "lib/layout/gathered.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace shardtool::layout {
namespace {

using Axes = std::vector<std::string>;

Over left_of(Over over, const Axes& axes) {
  std::erase_if(over, [&](const mesh::AxisRef& ref) {
    return std::ranges::find(axes, ref.axis) != axes.end();
  });
  return over;
}

/// Joins the parts of one node. Inside a Nest, a padded split keeps its padding even when no mesh
/// axis is left, because the outer cut counts it.
struct Join {
  const AxisExpr& expr;
  const Axes& axes;
  bool is_cut_again = false;

  AxisExpr operator()(const Whole&) const { return expr; }
  AxisExpr operator()(const Split& e) const {
    Over left = left_of(e.over, axes);
    return is_left(left, e.rule) ? split(e.n, std::move(left), e.rule) : whole(e.n);
  }
  AxisExpr operator()(const Cuts& e) const { return listed(e.over); }
  AxisExpr operator()(const Owners& e) const { return listed(e.over); }
  AxisExpr operator()(const Scale& e) const { return scale(joined(*e.of), e.unit); }
  AxisExpr operator()(const Product& e) const {
    return product(joined(*e.outer), joined(*e.inner));
  }
  AxisExpr operator()(const Concat& e) const {
    std::vector<AxisExpr> sections;
    for (const AxisExpr& section : e.sections) sections.push_back(joined(section));
    return concat(std::move(sections));
  }
  AxisExpr operator()(const Nest& e) const {
    Over left = left_of(e.over, axes);
    if (!is_left(left, e.rule)) return joined(*e.of);
    return nest(joined(*e.of, true), std::move(left), e.rule);
  }
  AxisExpr operator()(const Pad& e) const { return pad(joined(*e.of)); }

 private:
  AxisExpr joined(const AxisExpr& of, bool is_cut = false) const {
    return std::visit(Join{of, axes, is_cut || is_cut_again}, of.node());
  }
  bool is_left(const Over& left, const SplitRule& rule) const {
    return !left.empty() || (is_cut_again && rule.kind == SplitRule::Kind::kPadded);
  }
  AxisExpr listed(const Over& over) const {
    const Over left = left_of(over, axes);
    if (left == over) return expr;
    if (left.empty()) return whole(expr.size());
    throw Error(ErrorCode::kUnsupported,
                fmt::format("shards that are listed over {} cannot be joined along {} alone",
                            to_string(over), fmt::join(axes, ", ")))
        .note("expression", to_string(expr));
  }
};

}  // namespace

AxisExpr gathered(const AxisExpr& expr, const std::vector<std::string>& axes) {
  return std::visit(Join{expr, axes}, expr.node());
}

bool is_cut_along(const Layout& layout, const std::string& axis) {
  const auto is_used = [&](const auto& cut) {
    return std::ranges::any_of(axes_used(cut.expr),
                               [&](const mesh::AxisRef& ref) { return ref.axis == axis; });
  };
  return std::ranges::any_of(layout.axes(), is_used) ||
         std::ranges::any_of(layout.index_axes(), is_used);
}

mesh::Over replica_axes(const Layout& layout, const mesh::Over& over) {
  mesh::Over uncut;
  for (const mesh::AxisRef& axis : over) {
    if (!is_cut_along(layout, axis.axis)) uncut.push_back(axis);
  }
  return uncut;
}

Layout gathered(const Layout& layout, const std::vector<std::string>& axes) {
  std::vector<LayoutAxis> cut = layout.axes();
  for (LayoutAxis& axis : cut) axis.expr = gathered(axis.expr, axes);
  std::vector<IndexAxis> indices = layout.index_axes();
  for (IndexAxis& axis : indices) axis.expr = gathered(axis.expr, axes);
  return {layout.mesh(), layout.shape(), std::move(cut), std::move(indices)};
}

}  // namespace shardtool::layout
