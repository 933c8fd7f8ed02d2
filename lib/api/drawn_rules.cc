#include "lib/api/drawn_rules.h"

#include <map>
#include <set>
#include <string>

#include "lib/api/tensor_view.h"
#include "lib/base/dtype.h"
#include "lib/plan/byte_count.h"

namespace shardtool::api {
namespace {

/// The tensors of one rule while they are counted.
struct RuleTensors {
  i64 tensors = 0;
  i64 bytes = 0;
  i64 largest_bytes = -1;
  const mapping::ResolvedTensor* largest = nullptr;
  std::set<const layout::Layout*> layouts;
};

std::vector<i64> section_begins(const layout::AxisExpr& axis) {
  const auto* concat = std::get_if<layout::Concat>(&axis.node());
  if (concat == nullptr) return {};
  std::vector<i64> begins;
  i64 begin = 0;
  for (const layout::AxisExpr& section : concat->sections) {
    begins.push_back(begin);
    begin += section.size();
  }
  return begins;
}

DrawnRule drawn(const RuleTensors& rule, const TensorSpec& spec) {
  DrawnRule drawn{rule.tensors, rule.bytes, static_cast<i64>(rule.layouts.size()), {}, {}};
  InspectTensor& example = drawn.example;
  example.name = spec.name;
  example.dtype = to_string(spec.dtype);
  example.shape = spec.shape;
  example.bytes = rule.largest_bytes;
  describe_resolved(example, *rule.largest);
  for (const layout::LayoutAxis& axis : rule.largest->layout->axes())
    drawn.sections.push_back(section_begins(axis.expr));
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
    rule.layouts.insert(tensor.layout.get());
    if (bytes > rule.largest_bytes) {
      rule.largest_bytes = bytes;
      rule.largest = &tensor;
    }
  }
  std::vector<DrawnRule> all;
  for (const RuleTensors& rule : rules) all.push_back(drawn(rule, specs[rule.largest->tensor]));
  return all;
}

}  // namespace shardtool::api
