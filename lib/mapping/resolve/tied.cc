#include "lib/mapping/resolve/tied.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/text.h"
#include "lib/mapping/assertions.h"

namespace shardtool::mapping {
namespace {

using layout::Layout;

bool are_alike(const Layout& a, const Layout& b) {
  return a.shape() == b.shape() && a.ranks() == b.ranks() &&
         std::all_of(a.ranks().begin(), a.ranks().end(),
                     [&](i64 rank) { return a.region(rank) == b.region(rank); });
}

Error not_alike(const TensorSpec& a, const TensorSpec& b) {
  return Error(ErrorCode::kTied, fmt::format("'{}' and '{}' are tied, but are not cut alike",
                                             quote_for_message(a.name), quote_for_message(b.name)))
      .tensor(b.name)
      .note("tied", describe(a))
      .note("tied", describe(b))
      .help("give both the same rule, or take them out of \"tied\"");
}

/// Returns the positions of the group's tensors that have a layout.
std::vector<size_t> present_in(const std::vector<std::string>& group, const TensorIndex& by_name,
                               const std::vector<ResolvedTensor>& resolved) {
  std::vector<size_t> present;
  for (const std::string& name : group) {
    const auto found = by_name.find(name);
    if (found != by_name.end() && resolved[found->second].layout) present.push_back(found->second);
  }
  return present;
}

}  // namespace

std::vector<std::vector<std::string>> tied_groups(const Mapping& mapping,
                                                  std::span<const TensorSpec> tensors,
                                                  const TensorIndex& by_name,
                                                  const std::vector<ResolvedTensor>& resolved) {
  std::vector<std::vector<std::string>> groups;
  for (const Document& document : mapping.documents()) {
    for (const auto& group : document.tied) {
      const auto present = present_in(group, by_name, resolved);
      if (present.size() < 2) continue;
      auto& names = groups.emplace_back();
      for (const size_t i : present) {
        const size_t first = present.front();
        if (!are_alike(*resolved[first].layout, *resolved[i].layout))
          throw not_alike(tensors[first], tensors[i]);
        names.push_back(tensors[i].name);
      }
    }
  }
  return groups;
}

}  // namespace shardtool::mapping
