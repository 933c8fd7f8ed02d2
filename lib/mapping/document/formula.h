#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::mapping {

/// An operand of a product, with the operator before it; the first one has none.
struct FormulaTerm {
  std::string_view op;
  std::string_view operand;  ///< without spaces around it; may be empty
};

using FormulaProduct = std::vector<FormulaTerm>;

/// Splits a formula, the grammar of size expressions and of dims. Operands are views into the text.
///
///     sum := product ('+' product)*     product := operand (op operand)*
///
/// `ops` are the operators of products. A longer operator comes before its own beginning: "//"
/// before "/".
std::vector<FormulaProduct> split_formula(std::string_view text,
                                          std::span<const std::string_view> ops);

/// Returns the operand as an integer of at least 1, or nullopt if it is none.
std::optional<i64> positive_integer(std::string_view operand);

}  // namespace shardtool::mapping
