#include "lib/mapping/document/formula.h"

#include <algorithm>
#include <charconv>

#include "lib/base/text.h"

namespace shardtool::mapping {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// Returns the operator that the text begins with, or an empty one.
std::string_view op_at(std::string_view text, std::span<const std::string_view> ops) {
  const auto op = std::find_if(ops.begin(), ops.end(),
                               [text](std::string_view one) { return text.starts_with(one); });
  return op == ops.end() ? std::string_view() : *op;
}

FormulaProduct split_product(std::string_view text, std::span<const std::string_view> ops) {
  FormulaProduct product{{}};
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const std::string_view op = op_at(text.substr(at), ops);
    if (op.empty()) {
      ++at;
      continue;
    }
    product.back().operand = trimmed(text.substr(begin, at - begin));
    product.push_back({op, {}});
    begin = at += op.size();
  }
  product.back().operand = trimmed(text.substr(begin));
  return product;
}

}  // namespace

std::vector<FormulaProduct> split_formula(std::string_view text,
                                          std::span<const std::string_view> ops) {
  std::vector<FormulaProduct> sum;
  for (const std::string_view product : split_at(text, "+"))
    sum.push_back(split_product(product, ops));
  return sum;
}

std::optional<i64> positive_integer(std::string_view operand) {
  i64 value = 0;
  const char* const end = operand.data() + operand.size();
  const auto [at, failure] = std::from_chars(operand.data(), end, value);
  if (failure != std::errc{} || at != end || value < 1) return std::nullopt;
  return value;
}

}  // namespace shardtool::mapping
