#include "lib/engine/diagnosis/axis_words.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <variant>

#include "lib/base/text.h"

namespace shardtool::engine {
namespace {

/// "kv_heads" -> "kv head"; empty for a name that is no plural and so names no unit.
std::string singular(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  if (name.size() < 2 || name.back() != 's') return "";
  name.pop_back();
  return name;
}

std::optional<i64> size_of(std::string_view factor, const Side& side) {
  i64 literal = 0;
  const char* end = factor.data() + factor.size();
  if (std::from_chars(factor.data(), end, literal).ptr == end && literal > 0) return literal;
  const auto found = side.model->sizes.find(std::string(factor));
  if (found == side.model->sizes.end()) return std::nullopt;
  return found->second;
}

/// Indices per unit of "heads*head_dim": the product of the factors after the first.
std::optional<i64> unit_by_name(const std::vector<std::string_view>& factors, const Side& side) {
  i64 unit = 1;
  for (size_t i = 1; i < factors.size(); ++i) {
    const auto size = size_of(factors[i], side);
    if (!size) return std::nullopt;
    unit *= *size;
  }
  return unit;
}

i64 unit_by_expression(const layout::AxisExpr& expr) {
  const auto* scale = std::get_if<layout::Scale>(&expr.node());
  return scale == nullptr ? 1 : scale->unit;
}

std::vector<layout::AxisExpr> sections_of(const layout::AxisExpr& expr) {
  const auto* concat = std::get_if<layout::Concat>(&expr.node());
  if (concat == nullptr) return {expr};
  return concat->sections;
}

AxisSection section(const Side& side, const layout::AxisExpr& expr, std::string_view term,
                    i64 begin, const std::string& index) {
  AxisSection section{{begin, begin + expr.size()}, "", index, 1};
  const std::vector<std::string_view> factors = split_at(term, "*");
  const std::string name = singular(std::string(factors.front()));
  const i64 unit = unit_by_name(factors, side).value_or(unit_by_expression(expr));
  if (unit < 1 || expr.size() % unit != 0) return section;
  if (!name.empty()) section.unit_name = name;
  if (!name.empty() || factors.size() > 1) section.unit = unit;
  if (name.empty() && section.unit > 1) section.unit_name = "block";
  return section;
}

}  // namespace

const AxisSection& AxisWords::section_of(i64 global) const {
  for (const AxisSection& section : sections) {
    if (global < section.indices.end) return section;
  }
  return sections.back();
}

AxisWords words_of(const Side& side, size_t tensor, size_t axis, std::string index,
                   std::span<const std::string> names) {
  AxisWords words{std::move(index), {}};
  const layout::Layout& layout = side.layouts(tensor);
  if (axis >= layout.axes().size()) {
    words.sections.push_back({{0, 1}, "", words.index, 1});
    return words;
  }
  const layout::LayoutAxis& stored = layout.axes()[axis];
  const i64 extent = layout.shape()[axis];
  const auto terms = split_at(stored.logical, " + ");
  const auto expressions = sections_of(stored.expr);
  if (stored.granularity != 1 || stored.expr.size() != extent ||
      terms.size() != expressions.size()) {
    words.sections.push_back({{0, extent}, "", words.index, 1});
    return words;
  }
  i64 begin = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    words.sections.push_back(section(side, expressions[i], terms[i], begin, words.index));
    if (names.size() == terms.size()) words.sections.back().name = names[i];
    begin += expressions[i].size();
  }
  return words;
}

}  // namespace shardtool::engine
