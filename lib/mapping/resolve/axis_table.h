#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/layout/axis_expr.h"
#include "lib/mapping/mapping.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

/// Returns the layout::SplitRule of a policy. kError gives the rule of kBalanced; the caller must
/// refuse uneven cuts.
layout::SplitRule split_rule(Uneven uneven, i64 pad_to);

/// Returns the mesh axes of a reference. An axis that the mesh lacks is left out if
/// `may_lack_axes`; otherwise throws kUnknownName at its place.
mesh::Over over_of(const MeshRef& ref, bool may_lack_axes, const mesh::Mesh& mesh);

/// Cut of a logical axis, in units such as heads.
struct UnitCut {
  std::string name;        ///< name of the axis
  layout::AxisExpr units;  ///< one index per unit
  Uneven uneven = Uneven::kBalanced;
  Place place;                              ///< place for errors
  layout::Fill fill = layout::Fill::kZero;  ///< value of padding
  i64 together = 1;                         ///< number of units that stay together
  bool is_of_strategy = false;  ///< `name` is the tensor's axis and the strategy, no logical axis
};

/// The logical axes of all documents over one mesh. Each field of an axis comes from the nearest
/// document that has it. An axis with "groups" follows the cut of the axis that it names there: it
/// is grouped under that axis.
///
/// A1 the mesh axes of every axis are in the mesh
/// A2 an axis and the axis that it is grouped under have the same mesh axes
class AxisTable {
 public:
  /// `layout` is an entry of "layouts", or empty. `config` may be null. Documents and config must
  /// outlive the table. Throws kUnknownName and kGroups.
  AxisTable(const Mapping& mapping, const mesh::Mesh& mesh, const ModelConfig* config,
            const std::string& layout);

  bool has(const std::string& axis) const { return axes_.contains(axis); }
  /// Throws kUnknownName at `named_at` if no document defines the axis.
  void require(const std::string& axis, const Place& named_at) const;

  /// Returns the declared size, or nullopt. Throws what evaluate throws, and kSizeExpression for a
  /// cycle.
  std::optional<i64> declared_size(const std::string& axis);
  /// Like declared_size, but also returns nullopt if config.json lacks a value that the size needs,
  /// or has one of another type.
  std::optional<i64> size_if_given(const std::string& axis);
  const mesh::Over& over(const std::string& axis) const { return axes_.at(axis).over; }
  /// Returns true if the axis is cut in the tensors of a rule. Of several axes of the rule on one
  /// mesh axis, only those with "alone" are, if there are any.
  bool is_cut(const std::string& axis, const Rule& rule) const;
  /// Returns true if the axis is grouped under another axis, or another axis under it.
  bool has_groups(const std::string& axis) const;
  /// Returns the axes without axes grouped under them whose units are replicated because a user's
  /// file sets "small": "replicate". Lists only axes that have been cut so far.
  const std::set<std::string>& shared() const { return shared_; }
  const Place& place(const std::string& axis) const { return axes_.at(axis).spec.place; }
  /// The declared sizes that have been evaluated so far.
  std::map<std::string, i64> known_sizes() const;
  /// Lists the config values in the size: "num_attention_heads = 30 (from config.json)"; or empty.
  std::string size_origin(const std::string& axis) const;
  /// Cuts n units of the axis over its mesh axes. Requires at least one mesh axis. An axis and the
  /// axis that it is grouped under are cut together. Throws kGroups, kNotDivisible.
  const UnitCut& cut(const std::string& axis, i64 n);

  /// Sets, by axis, a number of units that later cuts keep together. With `pad`, sizes are rounded
  /// up until every part has the same number of such runs. Does not affect axes with owners. Must
  /// be called before the first `cut`.
  void align(const std::map<std::string, i64>& units, bool pad);

  const mesh::Mesh& mesh() const { return mesh_; }
  const ModelConfig* config() const { return config_; }
  /// Evaluates a size of the mapping.
  i64 evaluate_size(const SizeExpression& size);

 private:
  struct Entry {
    AxisSpec spec;
    bool may_lack_axes = false;
    bool small_in_preset = false;
    mesh::Over over;
    std::optional<i64> size;  ///< set after the first evaluation
    i64 aligned = 1;          ///< number of units that stay together
    bool pad_aligned = false;
  };

  void merge(const std::string& name, const AxisSpec& own, const Document& document);
  void add_default_axes(const Mapping& mapping);
  void apply_layout(const Mapping& mapping, const std::string& layout);
  void check_groups() const;
  bool is_alone(const std::string& axis) const;
  /// The axis that is grouped under this one, or an empty string.
  std::string grouped_by(const std::string& axis) const;
  layout::AxisExpr units(const std::string& axis, i64 n);
  std::optional<Uneven> uneven_of(const Entry& entry) const;
  layout::AxisExpr grouped_units(const std::string& axis, i64 n, const std::string& heads,
                                 const std::string& kv_heads);
  layout::AxisExpr aligned_units(const std::string& axis, i64 n) const;
  layout::AxisExpr owned_units(const std::string& axis, i64 n) const;
  i64 runs_of_rounds(const std::string& axis, i64 n) const;
  i64 required_size(const std::string& axis, const std::string& because_of);

  mesh::Mesh mesh_;
  const ModelConfig* config_;
  std::map<std::string, Entry> axes_;
  SizeChain chain_;
  std::map<std::pair<std::string, i64>, UnitCut> cuts_;
  std::set<std::string> shared_;
};

}  // namespace shardtool::mapping
