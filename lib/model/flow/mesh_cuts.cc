#include "lib/model/flow/mesh_cuts.h"

#include <algorithm>
#include <unordered_set>

namespace shardtool::model {
namespace {

using layout::Layout;

void add(std::vector<bool>& to, const std::vector<bool>& more) {
  for (size_t a = 0; a < to.size(); ++a) to[a] = to[a] || more[a];
}

/// Along every axis, which indices devices have.
using Indices = std::vector<std::vector<bool>>;

Indices no_indices(const mesh::Mesh& mesh) {
  Indices indices;
  for (const mesh::MeshAxis& axis : mesh.axes()) {
    indices.emplace_back(static_cast<size_t>(axis.size));
  }
  return indices;
}

void add_indices(const mesh::Mesh& mesh, std::span<const i64> ranks, Indices& indices) {
  for (i64 rank : ranks) {
    for (size_t a = indices.size(); a-- > 0;) {  // the last axis is the fastest
      indices[a][static_cast<size_t>(rank % mesh.axes()[a].size)] = true;
      rank /= mesh.axes()[a].size;
    }
  }
}

i64 count(const std::vector<bool>& indices) {
  return std::count(indices.begin(), indices.end(), true);
}

/// The axes that cut the tensor along one of its axes from `first` on.
std::vector<bool> cut_from(const mesh::Mesh& mesh, const Layout& layout, size_t first) {
  std::vector<bool> cut(mesh.axes().size());
  for (size_t d = first; d < layout.axes().size(); ++d) add(cut, cut_by(mesh, layout, d));
  return cut;
}

/// The axes along which some device has nothing of the tensor.
std::vector<bool> absent_along(const mesh::Mesh& mesh, const Layout& layout) {
  Indices indices = no_indices(mesh);
  add_indices(mesh, layout.ranks(), indices);
  std::vector<bool> absent;
  for (const auto& along : indices) absent.push_back(count(along) < std::ssize(along));
  return absent;
}

std::vector<bool> cut_by(const mesh::Mesh& mesh, const layout::AxisExpr& expr) {
  std::vector<bool> cut(mesh.axes().size());
  for (const mesh::AxisRef& ref : layout::axes_used(expr)) {
    for (size_t a = 0; a < cut.size(); ++a) {
      if (mesh.axes()[a].name == ref.axis && mesh.axes()[a].size > 1) cut[a] = true;
    }
  }
  return cut;
}

/// The axes that deal out the experts of rows that are theirs one below the other.
std::vector<bool> dealt_in_rows(const mesh::Mesh& mesh, const layout::AxisExpr& rows) {
  const auto* product = std::get_if<layout::Product>(&rows.node());
  return cut_by(mesh, product != nullptr ? *product->outer : rows);
}

/// The axes that cut the rows of each of them.
std::vector<bool> cut_inside_rows(const mesh::Mesh& mesh, const layout::AxisExpr& rows) {
  if (std::holds_alternative<layout::Scale>(rows.node())) return cut_by(mesh, layout::whole(1));
  const auto* product = std::get_if<layout::Product>(&rows.node());
  return cut_by(mesh, product != nullptr ? *product->inner : rows);
}

/// What the mesh axes do to the experts' numbers, and what else they do.
class Roles {
 public:
  Roles(const LayoutOf& layouts, const mesh::Mesh& mesh)
      : layouts_(layouts), mesh_(mesh), deal_(mesh.axes().size()), other_(mesh.axes().size()) {}

  void add_op(const BoundOp& bound) {
    const bool experts = std::holds_alternative<Experts>(bound.op->kind);
    for (const BoundWeight& weight : bound.weights) {
      if (weight.empty()) continue;
      const bool stacked = experts && !bound.form->per_expert;
      if (stacked) add_stack(layouts_(weight.front()).axes()[0].expr, bound.form->in_rows);
      if (experts && !stacked) add(deal_, dealt_by(mesh_, weight, layouts_));
      for (const size_t tensor : weight) {
        const Layout& layout = layouts_(tensor);
        if (!seen_.insert(&layout).second) continue;
        add(other_, cut_from(mesh_, layout, stacked ? 1 : 0));
        if (!experts) add(other_, absent_along(mesh_, layout));
      }
    }
  }

  mesh::Over dealing_alone() const {
    mesh::Over over;
    for (size_t a = 0; a < deal_.size(); ++a) {
      if (deal_[a] && !other_[a]) over.push_back({mesh_.axes()[a].name});
    }
    return over;
  }

 private:
  void add_stack(const layout::AxisExpr& first, bool in_rows) {
    add(deal_, in_rows ? dealt_in_rows(mesh_, first) : cut_by(mesh_, first));
    if (in_rows) add(other_, cut_inside_rows(mesh_, first));
  }

  const LayoutOf& layouts_;
  const mesh::Mesh& mesh_;
  std::vector<bool> deal_;
  std::vector<bool> other_;
  std::unordered_set<const Layout*> seen_;
};

}  // namespace

std::vector<bool> cut_by(const mesh::Mesh& mesh, const Layout& layout, size_t d) {
  return cut_by(mesh, layout.axes()[d].expr);
}

std::vector<bool> dealt_by(const mesh::Mesh& mesh, const BoundWeight& tensors,
                           const LayoutOf& layouts) {
  Indices first = no_indices(mesh);
  add_indices(mesh, layouts(tensors.front()).ranks(), first);
  Indices all = first;
  std::unordered_set<const Layout*> seen;
  for (const size_t tensor : tensors) {
    const Layout& layout = layouts(tensor);
    if (seen.insert(&layout).second) add_indices(mesh, layout.ranks(), all);
  }
  std::vector<bool> dealt;
  for (size_t a = 0; a < all.size(); ++a) dealt.push_back(count(all[a]) > count(first[a]));
  return dealt;
}

mesh::Over token_axes(const Model& model, const LayoutOf& layouts, const mesh::Mesh& mesh) {
  Roles roles(layouts, mesh);
  for (const Layer& layer : model.layers) {
    for (const BoundOp& bound : layer.ops) roles.add_op(bound);
  }
  return roles.dealing_alone();
}

}  // namespace shardtool::model
