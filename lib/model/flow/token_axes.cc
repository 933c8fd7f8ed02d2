#include "lib/model/flow/token_axes.h"

#include <algorithm>
#include <unordered_set>

#include "lib/ops/mesh_cuts.h"

namespace shardtool::model {
namespace {

using layout::Layout;
using ops::cut_by;

void add(std::vector<bool>& to, const std::vector<bool>& more) {
  for (size_t a = 0; a < to.size(); ++a) to[a] = to[a] || more[a];
}

/// Returns the mesh axes that cut the tensor along one of its axes from `first` on.
std::vector<bool> cut_from(const mesh::Mesh& mesh, const Layout& layout, size_t first) {
  std::vector<bool> cut(mesh.axes().size());
  for (size_t d = first; d < layout.axes().size(); ++d) add(cut, cut_by(mesh, layout, d));
  return cut;
}

/// Returns the mesh axes that distribute experts whose rows follow each other.
std::vector<bool> dealt_in_rows(const mesh::Mesh& mesh, const layout::AxisExpr& rows) {
  const auto* product = std::get_if<layout::Product>(&rows.node());
  return cut_by(mesh, product != nullptr ? *product->outer : rows);
}

/// Returns the mesh axes that cut the rows of each expert.
std::vector<bool> cut_inside_rows(const mesh::Mesh& mesh, const layout::AxisExpr& rows) {
  if (std::holds_alternative<layout::Scale>(rows.node())) return cut_by(mesh, layout::whole(1));
  const auto* product = std::get_if<layout::Product>(&rows.node());
  return cut_by(mesh, product != nullptr ? *product->inner : rows);
}

/// Effect of each mesh axis on experts and on all other weights.
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
      if (experts && !stacked) add(deal_, ops::dealt_by(mesh_, weight, layouts_));
      for (const size_t tensor : weight) {
        const Layout& layout = layouts_(tensor);
        if (!seen_.insert(&layout).second) continue;
        add(other_, cut_from(mesh_, layout, stacked ? 1 : 0));
        if (!experts) add(other_, ops::absent_along(mesh_, layout));
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

mesh::Over token_axes(const Model& model, const LayoutOf& layouts, const mesh::Mesh& mesh) {
  Roles roles(layouts, mesh);
  for (const Layer& layer : model.layers) {
    for (const BoundOp& bound : layer.ops) roles.add_op(bound);
  }
  return roles.dealing_alone();
}

}  // namespace shardtool::model
