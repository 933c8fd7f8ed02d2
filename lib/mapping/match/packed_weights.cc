#include "lib/mapping/match/packed_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "lib/base/checked.h"
#include "lib/base/name_map.h"
#include "lib/mapping/assertions.h"

namespace shardtool::mapping {
namespace {

/// A weight whose name is not stored, and the leading members that replace it.
struct Packed {
  std::vector<const TensorSpec*> members;
  std::vector<size_t> companions;  ///< parallel to members
};

Error contradiction(const std::string& weight, const Packed& packed, const std::string& what) {
  Error e(ErrorCode::kShapeMismatch,
          fmt::format("the parts of the packed weight '{}' {}", weight, what));
  for (const TensorSpec* member : packed.members) e.note("stored", describe(*member));
  return e.tensor(packed.members.front()->name);
}

/// Smallest and largest extents of a weight.
struct Extents {
  Shape least, most;
};

/// Returns the extents that the words of the weight allow. The last word of an axis may be partial,
/// so an axis that several members follow has at most the smallest extent of any.
Extents extents_of(const std::string& weight, const Packed& packed, const Companions& companions,
                   const CompanionSizes& sizes) {
  constexpr i64 kUnsaid = std::numeric_limits<i64>::max();
  Shape shape, least;
  for (size_t m = 0; m < packed.members.size(); ++m) {
    const auto& form = companions.all()[packed.companions[m]].spec->forms.front();
    const Shape& stored = packed.members[m]->shape;
    if (form.size() != stored.size())
      throw contradiction(weight, packed,
                          fmt::format("have a shard that is not of rank {}", form.size()));
    for (size_t a = 0; a < form.size(); ++a) {
      if (!form[a].axis) continue;
      const size_t axis = *form[a].axis;
      shape.resize(std::max(shape.size(), axis + 1), kUnsaid);
      least.resize(shape.size(), 0);
      const i64 granularity = granularity_of(form[a], stored[a], sizes);
      const auto extent = checked_mul(stored[a], granularity);
      if (!extent) throw Error(ErrorCode::kLimit, "a packed weight has 2^63 elements or more");
      shape[axis] = std::min(shape[axis], *extent);
      least[axis] = std::max(least[axis], *extent - granularity + 1);
    }
  }
  if (std::find(shape.begin(), shape.end(), kUnsaid) != shape.end())
    throw contradiction(weight, packed, "do not say how large it is");
  for (size_t m = 0; m < packed.members.size(); ++m) {
    try {
      companions.member(packed.companions[m], shape, packed.members[m]->shape, sizes);
    } catch (Error& e) {
      throw contradiction(weight, packed, "do not fit each other").note("why", e.message());
    }
  }
  return {least, shape};
}

}  // namespace

std::vector<PackedSpec> packed_weights(std::span<const TensorSpec> tensors, Companions& companions,
                                       const CompanionSizes& sizes,
                                       const std::function<void(Error)>& report) {
  const auto placed = companions.all();
  if (std::none_of(placed.begin(), placed.end(), [](const auto& p) { return p.spec->leads; }))
    return {};
  NameViewSet names;
  for (const TensorSpec& tensor : tensors) names.insert(tensor.name);
  std::map<std::string, Packed> weights;
  for (const TensorSpec& tensor : tensors) {
    for (const CompanionMatch& match : companions.find(tensor)) {
      if (!placed[match.companion].spec->leads) continue;
      if (names.contains(match.leader) && match.leader != tensor.name) continue;
      Packed& packed = weights[match.leader];
      packed.members.push_back(&tensor);
      packed.companions.push_back(match.companion);
    }
  }
  std::vector<PackedSpec> specs;
  for (const auto& [name, packed] : weights) {
    try {
      Extents extents = extents_of(name, packed, companions, sizes);
      specs.push_back({{name, packed.members.front()->dtype, std::move(extents.most)},
                       std::move(extents.least)});
    } catch (const Error& e) {
      if (!report) throw;
      report(e);
    }
  }
  return specs;
}

}  // namespace shardtool::mapping
