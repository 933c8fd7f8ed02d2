#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/layout/axis_expr.h"
#include "lib/mapping/mapping.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

/// The layout::SplitRule of a policy; kError cuts like kBalanced, and the caller refuses what is
/// uneven.
layout::SplitRule split_rule(Uneven uneven, i64 pad_to);

/// The mesh axes of a reference. A name that the mesh lacks counts 1 in a preset; in a file of
/// one's own it throws kUnknownName at its place.
mesh::Over over_of(const MeshRef& ref, bool in_preset, const mesh::Mesh& mesh);

/// How the units of a logical axis are dealt out.
struct UnitCut {
  std::string name;        ///< of the axis
  layout::AxisExpr units;  ///< one index per unit
  bool refuse_uneven = false;
  Place place;                              ///< what an error points at
  layout::Fill fill = layout::Fill::kZero;  ///< of padding
};

/// The logical axes of all documents, field by field from the nearest one, over one mesh.
///
/// A1 every axis' mesh axes are in the mesh
/// A2 an axis and the one that it is grouped under lie over the same mesh axes
class AxisTable {
 public:
  /// `layout` names an entry of "layouts", or is empty. `config` may be null. Both documents and
  /// config must outlive the table. Throws kUnknownName and kGroups.
  AxisTable(const Mapping& mapping, const mesh::Mesh& mesh, const ModelConfig* config,
            const std::string& layout);

  bool has(const std::string& axis) const { return axes_.contains(axis); }
  /// Throws kUnknownName, at the place that names it, when no document defines the axis.
  void require(const std::string& axis, const Place& named_at) const;

  /// The declared size, or nothing. Throws what evaluating it throws, and kSizeExpression for a
  /// cycle.
  std::optional<i64> declared_size(const std::string& axis);
  /// The same, but nothing, too, where config.json lacks a value that it needs or has another kind
  /// of value there.
  std::optional<i64> size_if_given(const std::string& axis);
  const mesh::Over& over(const std::string& axis) const { return axes_.at(axis).over; }
  const Place& place(const std::string& axis) const { return axes_.at(axis).spec.place; }
  /// The declared sizes that were evaluated.
  std::map<std::string, i64> known_sizes() const;
  /// "num_attention_heads = 30 (from config.json)", or empty.
  std::string size_origin(const std::string& axis) const;
  /// How n units of the axis lie over its mesh axes; the axis must be laid over some. An axis with
  /// "groups" and the one it is grouped under share one decision. Throws kGroups, kNotDivisible.
  const UnitCut& cut(const std::string& axis, i64 n);

  /// From now on the axes are cut in runs of this many units, and with `pad` rounded up so that the
  /// runs deal out evenly. Axes with owners are not. To be called before the first `cut`.
  void align(const std::map<std::string, i64>& units, bool pad);

  const mesh::Mesh& mesh() const { return mesh_; }
  const ModelConfig* config() const { return config_; }
  /// Evaluates any size of the mapping.
  i64 evaluate_size(const SizeExpression& size);

 private:
  struct Entry {
    AxisSpec spec;
    bool mesh_in_preset = false;
    mesh::Over over;
    std::optional<i64> size;  ///< once evaluated
    i64 aligned = 1;          ///< units that stay together
    bool pad_aligned = false;
  };

  void merge(const std::string& name, const AxisSpec& spec, bool in_preset);
  void apply_layout(const Mapping& mapping, const std::string& layout);
  void check_groups() const;
  /// The axis that is grouped under this one, or empty.
  std::string grouped_by(const std::string& axis) const;
  layout::AxisExpr units(const std::string& axis, i64 n);
  layout::AxisExpr grouped_units(const std::string& axis, i64 n, const std::string& heads,
                                 const std::string& kv_heads);
  layout::AxisExpr aligned_units(const std::string& axis, i64 n) const;
  layout::AxisExpr owned_units(const std::string& axis, i64 n) const;
  i64 required_size(const std::string& axis, const std::string& because_of);

  mesh::Mesh mesh_;
  const ModelConfig* config_;
  std::map<std::string, Entry> axes_;
  SizeChain chain_;
  std::map<std::pair<std::string, i64>, UnitCut> cuts_;
};

}  // namespace shardtool::mapping
