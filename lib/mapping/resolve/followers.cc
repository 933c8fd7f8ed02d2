#include "lib/mapping/resolve/followers.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/mapping/assertions.h"
#include "lib/mapping/resolve/cut_checks.h"

namespace shardtool::mapping {
namespace {

layout::Straddling straddling_of(Straddle straddle) {
  switch (straddle) {
    case Straddle::kReplicateScale:
      return layout::Straddling::kShare;
    case Straddle::kRefine:
      return layout::Straddling::kRefine;
    case Straddle::kError:
    case Straddle::kUnevenAligned:
    case Straddle::kPad:
      return layout::Straddling::kRefuse;
  }
  throw Error(ErrorCode::kInternal, "unknown policy for straddled blocks");
}

/// True if the policy gives one value to several devices.
bool makes_copies(Straddle straddle) {
  return straddle == Straddle::kRefine || straddle == Straddle::kReplicateScale;
}

/// Adds the companion and both tensors to the error.
Error& explain(Error& e, const PlacedCompanion& placed, const layout::BundleMember& member,
               const TensorSpec& tensor, const TensorSpec& leader, Straddle straddle) {
  if (!e.place()) e.at(placed.spec->place);
  if (e.code() == ErrorCode::kShapeMismatch)
    e.help("take the tensor, the one that it follows and config.json from one model");
  const bool is_packed = std::ranges::any_of(member.axes, &layout::MemberAxis::is_packed);
  if (e.code() == ErrorCode::kBlockStraddle && makes_copies(straddle) && is_packed) {
    e.note("straddle",
           "a block holds several values, of which a device would need a part; only one value of a "
           "whole block, such as a scale, can have copies");
  }
  return e.tensor(tensor.name).note("tensor", describe(tensor)).note("follows", describe(leader));
}

}  // namespace

Followers::Followed Followers::decide(const PlacedCompanion& placed,
                                      const layout::BundleMember& member,
                                      const ResolvedTensor& leading, Dtype dtype) const {
  const layout::Layout& leader = *leading.layout;
  const CompanionSpec& spec = *placed.spec;
  Followed followed;
  followed.layout =
      checked(member_layout(leader, member, straddling_of(straddle_)), dtype, allow_empty_shards_);
  if (straddle_ == Straddle::kRefine && cuts_groups(spec, *followed.layout, sizes_))
    throw Error(ErrorCode::kStrategy, "groups that tensors point into cannot be refined")
        .help("use \"uneven-aligned\" or \"replicate-scale\"");
  followed.by = std::make_shared<const TensorDecision>(
      TensorDecision{placed.label,
                     spec.place,
                     std::string(to_string(spec.kind)),
                     {},
                     transforms_of(*followed.layout),
                     value_shifts(spec, leader, *followed.layout, sizes_),
                     {},
                     !spec.leads,
                     leading.by->sections});
  return followed;
}

ResolvedTensor Followers::follow(size_t companion, size_t tensor, const ResolvedTensor& leader,
                                 std::span<const TensorSpec> tensors) {
  const PlacedCompanion& placed = companions_.all()[companion];
  const TensorSpec& spec = tensors[tensor];
  Followed& followed = followed_[{companion, leader.layout.get(), spec.shape, spec.dtype}];
  if (followed.has_failed) return {tensor, nullptr, nullptr, {}};
  if (followed.layout) return {tensor, followed.layout, followed.by, leader.numbers};
  layout::BundleMember member;
  try {
    member = companions_.member(companion, leader.layout->shape(), spec.shape, sizes_);
    followed = decide(placed, member, leader, spec.dtype);
  } catch (Error& e) {
    followed.has_failed = true;
    throw explain(e, placed, member, spec, tensors[leader.tensor], straddle_);
  }
  return {tensor, followed.layout, followed.by, leader.numbers};
}

}  // namespace shardtool::mapping
