#include "lib/mapping/resolve/block_alignment.h"

#include <numeric>
#include <set>
#include <tuple>

namespace shardtool::mapping {
namespace {

/// Adds the alignment that blocks of `block` indices of this dim require of the axes cut in it.
void align_dim(const Dim& dim, i64 extent, i64 block, AxisTable& axes,
               std::map<std::string, i64>& alignment) {
  if (dim.sections.empty()) return;  // null: not cut
  const DeclaredSize declared = [&](const std::string& axis) { return axes.declared_size(axis); };
  const auto inferred = infer_size(dim, declared, extent);
  const DeclaredSize size = [&](const std::string& axis) {
    return inferred && inferred->first == axis ? std::optional(inferred->second) : declared(axis);
  };
  for (const FoldedAxes& section : dim.sections) {
    for (size_t f = 0; f < section.factors.size(); ++f) {
      const std::string& axis = section.factors[f].axis;
      if (axis.empty() || axes.over(axis).empty()) continue;
      const i64 unit = product_of(section, f + 1, size);
      i64& units = alignment.try_emplace(axis, 1).first->second;
      units = std::lcm(units, block / std::gcd(block, unit));
    }
  }
}

}  // namespace

std::map<std::string, i64> block_alignment(std::span<const TensorSpec> tensors,
                                           const std::vector<Assignment>& assigned,
                                           const RuleMatcher& rules, const Companions& companions,
                                           const CompanionSizes& sizes, AxisTable& axes) {
  std::map<std::string, i64> alignment;
  std::set<std::tuple<size_t, size_t, Shape, Shape>> seen;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (assigned[i].kind != Assignment::Kind::kCompanion) continue;
    const Assignment& leader = assigned[assigned[i].leader];
    const Shape& shape = tensors[assigned[i].leader].shape;
    if (leader.kind != Assignment::Kind::kRule) continue;
    const auto* dims = std::get_if<std::vector<Dim>>(&rules.rules()[leader.match.rule].rule->cut);
    if (dims == nullptr || dims->size() != shape.size()) continue;
    if (!seen.emplace(leader.match.rule, assigned[i].companion, shape, tensors[i].shape).second)
      continue;
    const auto member = companions.member(assigned[i].companion, shape, tensors[i].shape, sizes);
    for (const layout::MemberAxis& axis : member.axes) {
      if (!axis.follows || *axis.follows >= shape.size()) continue;
      if (axis.granularity > 1)
        align_dim((*dims)[*axis.follows], shape[*axis.follows], axis.granularity, axes, alignment);
    }
  }
  return alignment;
}

}  // namespace shardtool::mapping
