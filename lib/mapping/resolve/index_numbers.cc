#include "lib/mapping/resolve/index_numbers.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/text.h"
#include "lib/mapping/document/name_form.h"
#include "lib/mapping/resolve/missing_numbers.h"

namespace shardtool::mapping {
namespace {

/// Returns the first of 0 .. n-1 that does not occur exactly once among sorted numbers, or n.
i64 first_fault(const std::vector<i64>& sorted, i64 n) {
  for (i64 i = 0; i < n; ++i) {
    const auto [begin, end] = std::equal_range(sorted.begin(), sorted.end(), i);
    if (end - begin != 1) return i;
  }
  return n;
}

}  // namespace

void IndexNumbers::add(const PlacedRule& rule, const std::string& axis, std::string_view name,
                       const Capture& number) {
  i64& largest = largest_.try_emplace(axis, 0).first->second;
  largest = std::max(largest, number.value);
  const std::string_view before = name.substr(0, number.begin);
  if (!has_number(before)) {
    outer_[axis].insert(number.value);
    return;
  }
  std::string rest;
  rest.reserve(name.size());
  rest += before;
  rest += '<';
  rest += name.substr(number.begin + number.size);
  Family& family = nested_[{axis, std::move(rest)}];
  if (family.rule == nullptr) family = {std::string(name), &rule, {}};
  family.numbers.push_back(number.value);
}

i64 IndexNumbers::size(const std::string& axis, AxisTable& axes) const {
  if (const auto declared = axes.declared_size(axis)) return *declared;
  const auto largest = largest_.find(axis);
  return largest == largest_.end() ? 0 : largest->second + 1;
}

void IndexNumbers::check_complete(AxisTable& axes) const {
  for (const auto& [key, family] : nested_) {
    const std::string& axis = key.first;
    const auto size = axes.declared_size(axis);
    if (!size) continue;
    std::vector<i64> sorted = family.numbers;
    std::sort(sorted.begin(), sorted.end());
    const i64 fault = first_fault(sorted, *size);
    if (fault == *size && sorted.back() < *size) continue;
    const i64 shown = fault == *size ? sorted.back() : fault;
    const auto times = std::count(sorted.begin(), sorted.end(), shown);
    Error e(ErrorCode::kAssertion,
            fmt::format("index {} of axis '{}' is {}: the axis has {} indices", shown, axis,
                        times == 0   ? "missing"
                        : times == 1 ? "too large"
                                     : "there twice",
                        *size));
    e.at(family.rule->rule->place).tensor(family.example);
    e.note("tensors",
           fmt::format("{} like '{}'", sorted.size(), quote_for_message(family.example)));
    e.note("expected", fmt::format("each of 0 to {} once", *size - 1));
    if (const std::string origin = axes.size_origin(axis); !origin.empty())
      e.note("config", origin);
    throw e.help(
        times == 0
            ? "find the file that holds the missing tensors, or correct the size of the axis"
            : "take config.json and the tensors from one model, or correct the size of the axis");
  }
}

std::vector<std::string> IndexNumbers::gaps(AxisTable& axes) const {
  std::vector<std::string> warnings;
  for (const auto& [axis, numbers] : outer_) {
    const auto size = axes.size_if_given(axis);
    if (!size) continue;
    const MissingNumbers missing = missing_numbers(numbers, *size);
    const i64 beyond = static_cast<i64>(std::distance(numbers.lower_bound(*size), numbers.end()));
    if (missing.empty() && beyond == 0) continue;
    const std::string origin = axes.size_origin(axis);
    std::string text =
        fmt::format("axis '{}' has size {}{}", axis, *size, origin.empty() ? "" : ", " + origin);
    if (!missing.empty()) text += fmt::format(", but no tensor has index {}", to_string(missing));
    if (beyond > 0) text += fmt::format(", but tensors have indices up to {}", *numbers.rbegin());
    warnings.push_back(std::move(text));
  }
  return warnings;
}

}  // namespace shardtool::mapping
