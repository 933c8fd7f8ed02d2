#include "lib/api/drawn_rules.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "lib/api/tensor_view.h"
#include "lib/base/dtype.h"
#include "lib/plan/byte_count.h"

namespace shardtool::api {
namespace {

/// Tensors with one layout.
struct LaidOut {
  i64 tensors = 0;
  size_t first = 0;  ///< index of the first one
};

/// The tensors of one rule while they are counted.
struct RuleTensors {
  i64 tensors = 0;
  i64 bytes = 0;
  i64 largest_bytes = -1;
  const mapping::ResolvedTensor* largest = nullptr;
  std::map<const layout::Layout*, LaidOut> layouts;
};

/// Returns the ranks of the tensors in the order of their first ones; nothing if all have the same.
std::vector<DrawnOwners> owners_of(const RuleTensors& rule, const std::vector<TensorSpec>& specs) {
  std::map<std::vector<i64>, LaidOut> by_ranks;
  for (const auto& [layout, laid_out] : rule.layouts) {
    const auto [found, is_new] = by_ranks.try_emplace(layout->ranks(), LaidOut{0, laid_out.first});
    found->second.tensors += laid_out.tensors;
    found->second.first = std::min(found->second.first, laid_out.first);
  }
  if (by_ranks.size() == 1) return {};
  std::vector<std::pair<size_t, DrawnOwners>> all;
  for (const auto& [ranks, laid_out] : by_ranks)
    all.push_back({laid_out.first, {ranks, laid_out.tensors, specs[laid_out.first].name}});
  std::ranges::sort(all, {}, [](const auto& one) { return one.first; });
  std::vector<DrawnOwners> owners;
  for (auto& [first, one] : all) owners.push_back(std::move(one));
  return owners;
}

DrawnRule drawn(const RuleTensors& rule, const TensorSpec& spec) {
  DrawnRule drawn{rule.tensors, rule.bytes, static_cast<i64>(rule.layouts.size()), {}, {}};
  InspectTensor& example = drawn.example;
  example.name = spec.name;
  example.dtype = to_string(spec.dtype);
  example.shape = spec.shape;
  example.bytes = rule.largest_bytes;
  describe_resolved(example, *rule.largest);
  return drawn;
}

}  // namespace

std::vector<DrawnRule> drawn_rules(const mapping::Resolution& resolution,
                                   const std::vector<TensorSpec>& specs) {
  std::map<std::string, size_t> numbers;
  std::vector<RuleTensors> rules;
  for (const mapping::ResolvedTensor& tensor : resolution.tensors) {
    const auto [found, is_new] = numbers.try_emplace(tensor.by->rule, rules.size());
    if (is_new) rules.emplace_back();
    RuleTensors& rule = rules[found->second];
    const TensorSpec& spec = specs[tensor.tensor];
    const i64 bytes = byte_size(spec.dtype, spec.shape).value_or(0);
    ++rule.tensors;
    plan::add_bytes(rule.bytes, bytes);
    const auto layout = rule.layouts.try_emplace(tensor.layout.get(), LaidOut{0, tensor.tensor});
    ++layout.first->second.tensors;
    if (bytes > rule.largest_bytes) {
      rule.largest_bytes = bytes;
      rule.largest = &tensor;
    }
  }
  std::vector<DrawnRule> all;
  for (const RuleTensors& rule : rules) {
    all.push_back(drawn(rule, specs[rule.largest->tensor]));
    all.back().owners = owners_of(rule, specs);
  }
  return all;
}

}  // namespace shardtool::api
