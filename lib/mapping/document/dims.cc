#include "lib/mapping/document/dims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/text.h"
#include "lib/mapping/document/formula.h"

namespace shardtool::mapping {
namespace {

[[noreturn]] void refuse_dim(std::string_view dim, const std::string& why) {
  throw Error(ErrorCode::kMappingSchema,
              fmt::format("'{}' is not an axis of a tensor: {}", quote_for_message(dim), why))
      .help(
          "write null, an axis such as \"embed\", a product \"heads*head_dim\", or sections side "
          "by side \"mlp + mlp\"");
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

Factor factor_of(std::string_view dim, std::string_view text) {
  if (text.empty()) refuse_dim(dim, "a factor is missing");
  if (!std::all_of(text.begin(), text.end(), is_name_char)) {
    refuse_dim(dim, fmt::format("'{}' is neither a name nor an integer", text));
  }
  if (!is_digit(text[0])) return {std::string(text), 1};
  const auto value = positive_integer(text);
  if (!value) refuse_dim(dim, fmt::format("'{}' is not a positive integer", text));
  return {"", *value};
}

i64 in_range(const std::optional<i64>& value, const Dim& dim) {
  if (value) return *value;
  throw Error(ErrorCode::kShapeMismatch, fmt::format("the sizes of '{}' are above 2^63", dim.text));
}

/// One section of a dim: coefficient * unknown, or the coefficient alone.
struct Term {
  i64 coefficient = 1;
  std::string unknown;
};

Term term_of(const Dim& dim, const FoldedAxes& section, const DeclaredSize& declared) {
  Term term;
  for (const Factor& factor : section.factors) {
    const auto size = factor.axis.empty() ? std::optional(factor.literal) : declared(factor.axis);
    if (size) {
      term.coefficient = in_range(checked_mul(term.coefficient, *size), dim);
      continue;
    }
    if (!term.unknown.empty()) {
      throw Error(ErrorCode::kShapeMismatch,
                  fmt::format("'{}' multiplies two axes without a size, '{}' and '{}'", dim.text,
                              term.unknown, factor.axis))
          .help("give one of them a \"size\" in \"axes\"");
    }
    term.unknown = factor.axis;
  }
  return term;
}

/// Sum of the sections: known + coefficient * unknown.
struct Total {
  i64 known = 0;
  i64 coefficient = 0;
  std::string unknown;
};

Total total_of(const Dim& dim, const DeclaredSize& declared) {
  Total total;
  for (const FoldedAxes& section : dim.sections) {
    const Term term = term_of(dim, section, declared);
    i64& sum = term.unknown.empty() ? total.known : total.coefficient;
    sum = in_range(checked_add(sum, term.coefficient), dim);
    if (term.unknown.empty() || term.unknown == total.unknown) continue;
    if (!total.unknown.empty()) {
      throw Error(ErrorCode::kShapeMismatch,
                  fmt::format("'{}' has two axes without a size, '{}' and '{}'", dim.text,
                              total.unknown, term.unknown))
          .help("give one of them a \"size\" in \"axes\"");
    }
    total.unknown = term.unknown;
  }
  return total;
}

Error unfit(const std::string& message) {
  return Error(ErrorCode::kShapeMismatch, message)
      .help(
          "take config.json and the tensors from one model; or correct the rule's \"dims\", or the "
          "\"size\" of an axis");
}

std::string with_sizes(const Dim& dim, const DeclaredSize& declared) {
  std::string text;
  for (const FoldedAxes& section : dim.sections) {
    if (!text.empty()) text += " + ";
    for (size_t f = 0; f < section.factors.size(); ++f) {
      const Factor& factor = section.factors[f];
      const auto size = factor.axis.empty() ? std::optional(factor.literal) : declared(factor.axis);
      text += fmt::format("{}{}", f == 0 ? "" : "*", size ? std::to_string(*size) : factor.axis);
    }
  }
  return text;
}

}  // namespace

Dim parse_dim(std::string_view text) {
  constexpr std::array<std::string_view, 1> kOps{"*"};
  Dim dim{std::string(text), {}, {}};
  for (const FormulaProduct& section : split_formula(text, kOps)) {
    FoldedAxes& product = dim.sections.emplace_back();
    for (const FormulaTerm& term : section)
      product.factors.push_back(factor_of(text, term.operand));
  }
  return dim;
}

std::optional<std::pair<std::string, i64>> infer_size(const Dim& dim, const DeclaredSize& declared,
                                                      i64 extent) {
  const Total total = total_of(dim, declared);
  const i64 rest = extent - total.known;
  if (total.unknown.empty()) {
    if (rest == 0) return std::nullopt;
    throw unfit(fmt::format("'{}' is {} = {}, but the tensor has {} elements there", dim.text,
                            with_sizes(dim, declared), total.known, extent));
  }
  if (rest < 0 || rest % total.coefficient != 0) {
    throw unfit(fmt::format("'{}' is {}, which fits no '{}': the tensor has {} elements there",
                            dim.text, with_sizes(dim, declared), total.unknown, extent));
  }
  return std::pair(total.unknown, rest / total.coefficient);
}

i64 extent_of(const Dim& dim, const DeclaredSize& size) {
  i64 extent = 0;
  for (const FoldedAxes& section : dim.sections)
    extent = in_range(checked_add(extent, product_of(section, 0, size)), dim);
  return extent;
}

i64 product_of(const FoldedAxes& product, size_t first, const DeclaredSize& size) {
  i64 value = 1;
  for (size_t f = first; f < product.factors.size(); ++f) {
    const Factor& factor = product.factors[f];
    const auto next =
        checked_mul(value, factor.axis.empty() ? factor.literal : size(factor.axis).value());
    if (!next) throw Error(ErrorCode::kShapeMismatch, "the sizes of an axis are above 2^63");
    value = *next;
  }
  return value;
}

}  // namespace shardtool::mapping
