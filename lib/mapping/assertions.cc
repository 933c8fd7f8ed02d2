#include "lib/mapping/assertions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/text.h"

namespace shardtool::mapping {
namespace {

bool has_rule(const Assignment& a, size_t rule) {
  return a.kind == Assignment::Kind::kRule && a.match.rule == rule;
}

Error wrong_dtype(const PlacedRule& placed, Dtype found) {
  std::vector<std::string_view> expected;
  for (const Dtype dtype : placed.rule->dtypes) expected.push_back(shardtool::to_string(dtype));
  return Error(ErrorCode::kAssertion, fmt::format("a tensor of rule '{}' is {}", placed.label,
                                                  shardtool::to_string(found)))
      .note("expected", fmt::format("{}", fmt::join(expected, " or ")));
}

void check_count(const PlacedRule& placed, i64 found, AxisTable& axes) {
  const i64 expected = axes.evaluate_size(*placed.rule->count);
  if (found == expected) return;
  Error e(ErrorCode::kAssertion, fmt::format("rule '{}' decides {} tensors, its \"count\" is {}",
                                             placed.label, found, expected));
  e.at(placed.rule->place).note("count", placed.rule->count->text);
  const std::string origin = config_values(*placed.rule->count, axes.config());
  if (!origin.empty()) e.note("config", origin);
  throw e;
}

}  // namespace

std::string describe(const TensorSpec& tensor) {
  return fmt::format("{} {} {}", quote_for_message(tensor.name), shardtool::to_string(tensor.shape),
                     shardtool::to_string(tensor.dtype));
}

Error& blame(Error& e, size_t tensor, std::span<const TensorSpec> tensors,
             const std::vector<Assignment>& assigned, const RuleMatcher& rules) {
  const size_t rule = assigned[tensor].match.rule;
  const PlacedRule& placed = rules.rules()[rule];
  const auto others = std::count_if(assigned.begin(), assigned.end(),
                                    [rule](const Assignment& a) { return has_rule(a, rule); }) -
                      1;
  if (!e.place()) e.at(placed.rule->place);
  return e.tensor(tensors[tensor].name)
      .note("tensor",
            describe(tensors[tensor]) + (others > 0 ? fmt::format(" (and {} more)", others) : ""))
      .note("rule", fmt::format("{} ({})", placed.label, line_of(placed.rule->place)));
}

void check_assertions(std::span<const TensorSpec> tensors, const std::vector<Assignment>& assigned,
                      const RuleMatcher& rules, AxisTable& axes) {
  std::vector<i64> counts(rules.rules().size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (assigned[i].kind != Assignment::Kind::kRule) continue;
    const PlacedRule& placed = rules.rules()[assigned[i].match.rule];
    ++counts[assigned[i].match.rule];
    const auto& dtypes = placed.rule->dtypes;
    if (dtypes.empty() || std::find(dtypes.begin(), dtypes.end(), tensors[i].dtype) != dtypes.end())
      continue;
    Error e = wrong_dtype(placed, tensors[i].dtype);
    throw blame(e, i, tensors, assigned, rules);
  }
  for (size_t r = 0; r < counts.size(); ++r) {
    if (rules.rules()[r].rule->count && rules.is_used(r))
      check_count(rules.rules()[r], counts[r], axes);
  }
}

}  // namespace shardtool::mapping
