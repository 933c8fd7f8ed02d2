#include "lib/mapping/resolve/axis_usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <utility>

#include "lib/base/text.h"

namespace shardtool::mapping {
namespace {

using Names = std::set<std::string>;

void add_names(const StrategySpec& strategy, Names& names) {
  for (const auto* size : {&strategy.num_heads, &strategy.num_kv_heads, &strategy.head_dim}) {
    if (*size) add_axes(**size, names);
  }
  for (const SegmentSpec& segment : strategy.segments) {
    add_axes(segment.units, names);
    if (segment.unit) add_axes(*segment.unit, names);
  }
}

void add_names(const Rule& rule, Names& names) {
  for (const auto& [capture, axis] : rule.index) names.insert(axis);
  if (rule.count) add_axes(*rule.count, names);
  if (const auto* strategy = std::get_if<StrategySpec>(&rule.cut)) {
    add_names(*strategy, names);
    return;
  }
  for (const Dim& dim : std::get<std::vector<Dim>>(rule.cut)) {
    for_each_factor(dim, [&](const Factor& factor) { names.insert(factor.axis); });
  }
}

/// The mesh axes along which some tensor is cut.
Names cutting_axes(const Resolution& resolution) {
  std::set<const layout::Layout*> seen;
  Names used;
  const auto add = [&used](const layout::AxisExpr& expr) {
    for (const mesh::AxisRef& ref : layout::axes_used(expr)) used.insert(ref.axis);
  };
  for (const ResolvedTensor& tensor : resolution.tensors) {
    if (!seen.insert(tensor.layout.get()).second) continue;
    for (const layout::LayoutAxis& axis : tensor.layout->axes()) add(axis.expr);
    for (const layout::IndexAxis& axis : tensor.layout->index_axes()) add(axis.expr);
  }
  return used;
}

/// The mesh axes that the documents use.
Names known_mesh_axes(const Mapping& mapping) {
  Names known;
  for (const Document& document : mapping.documents()) {
    for (const auto& [name, axis] : document.axes) {
      if (!axis.mesh) continue;
      for (const mesh::AxisRef& ref : axis.mesh->over) known.insert(ref.axis);
    }
  }
  return known;
}

/// Returns a logical axis of the tensors that no mesh axis cuts: "embed", or else the largest;
/// empty if there is none.
std::string uncut_logical_axis(const Mapping& mapping, const Resolution& resolution) {
  std::map<std::string, bool> is_cut;
  for (const Document& document : mapping.documents()) {
    for (const auto& [name, axis] : document.axes) {
      if (axis.mesh) is_cut.try_emplace(name, !axis.mesh->over.empty());
    }
  }
  const auto embed = is_cut.find("embed");
  if (embed != is_cut.end() && !embed->second) return embed->first;
  std::string found;
  i64 largest = 0;
  for (const auto& [name, size] : resolution.axis_sizes) {
    const auto cut = is_cut.find(name);
    if ((cut != is_cut.end() && cut->second) || size <= largest) continue;
    found = name;
    largest = size;
  }
  return found;
}

}  // namespace

std::vector<mesh::MeshAxis> uncut_axes(const Resolution& resolution) {
  const Names used = cutting_axes(resolution);
  std::vector<mesh::MeshAxis> uncut;
  for (const mesh::MeshAxis& axis : resolution.mesh.axes()) {
    if (axis.size > 1 && !used.contains(axis.name)) uncut.push_back(axis);
  }
  return uncut;
}

std::vector<std::string> idle_mesh_axes(const Mapping& mapping, const Resolution& resolution,
                                        const ResolvedWith& resolved_with) {
  const Names known = known_mesh_axes(mapping);
  const std::vector<mesh::MeshAxis> uncut = uncut_axes(resolution);
  const std::string logical = uncut.empty() ? "" : uncut_logical_axis(mapping, resolution);
  std::vector<std::string> warnings;
  for (const mesh::MeshAxis& axis : uncut) {
    std::string text =
        fmt::format("mesh axis '{}' cuts no tensor: the {} devices along it get the same bytes",
                    quote_for_message(axis.name), axis.size);
    if (!known.empty() && !known.contains(axis.name))
      text += fmt::format("; the mapping cuts over {}", fmt::join(known, ", "));
    const bool should_cut =
        std::ranges::find(resolution.gathered, axis.name) != resolution.gathered.end();
    const auto with_it =
        logical.empty() || !should_cut ? std::nullopt : resolved_with("axes." + logical, axis.name);
    if (with_it && uncut_axes(*with_it).size() < uncut.size())
      text += fmt::format("; --set axes.{0}={1} cuts '{0}' over it", logical, axis.name);
    warnings.push_back(std::move(text));
  }
  return warnings;
}

std::vector<std::string> unused_axes(const Mapping& mapping) {
  Names named;
  for (const Document& document : mapping.documents()) {
    for (const Rule& rule : document.rules) add_names(rule, named);
    for (const Rule& rule : document.overrides) add_names(rule, named);
    for (const auto& [name, axis] : document.axes) {
      if (axis.size) add_axes(*axis.size, named);
      if (axis.groups) named.insert(*axis.groups);
    }
  }
  std::vector<std::string> warnings;
  for (const Document& document : mapping.documents()) {
    if (document.is_preset) continue;
    for (const auto& [name, axis] : document.axes) {
      if (named.contains(name)) continue;
      warnings.push_back(
          fmt::format("{}: axis '{}' is named by no rule", line_of(axis.place), name));
    }
  }
  return warnings;
}

std::vector<std::string> axes_without_tensors(const RuleMatcher& rules, AxisTable& axes) {
  Names used;
  Names inner;
  Names outer;
  for (size_t r = 0; r < rules.rules().size(); ++r) {
    const Rule& rule = *rules.rules()[r].rule;
    if (rules.is_used(r)) add_names(rule, used);
    for (const auto& [capture, axis] : rule.index)
      (rule.index.size() > 1 ? inner : outer).insert(axis);
  }
  std::vector<std::string> warnings;
  for (const std::string& axis : inner) {
    // Skips axes that no document defines: a rule that matches no tensor may name one.
    const bool expected = axes.has(axis) && !outer.contains(axis) && !used.contains(axis);
    const auto size = expected ? axes.size_if_given(axis) : std::nullopt;
    const std::string origin = size ? axes.size_origin(axis) : "";
    if (origin.empty()) continue;
    warnings.push_back(
        fmt::format("axis '{}' has size {}, {}, but no tensor has it", axis, *size, origin));
  }
  return warnings;
}

}  // namespace shardtool::mapping
