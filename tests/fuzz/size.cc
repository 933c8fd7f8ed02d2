// An expression for a size.
#include <limits>
#include <optional>
#include <string>

#include "lib/mapping/document/config.h"
#include "lib/mapping/document/size_expression.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {
namespace {

using mapping::SizeAtom;
using mapping::SizeExpression;

__extension__ typedef __int128 Wide;

const mapping::ModelConfig& model_sizes() {
  static const auto config = mapping::parse_config(
      R"({"a": 4096, "b": {"c": [7, 32]}, "z": 0, "huge": 9223372036854775807})", "config.json");
  return config;
}

i64 axis_size(const std::string& axis) {
  return axis == "x" ? 6 : 10;
}

/// Value of an atom, or nullopt.
std::optional<Wide> value_of(const SizeAtom& atom) {
  if (atom.kind == SizeAtom::Kind::kInteger) return atom.value;
  if (atom.kind == SizeAtom::Kind::kAxis) return axis_size(atom.name);
  if (atom.name == "a") return 4096;
  if (atom.name == "b.c[0]") return 7;
  if (atom.name == "b.c[1]") return 32;
  if (atom.name == "huge") return std::numeric_limits<i64>::max();
  return std::nullopt;
}

bool fits(Wide value) {
  return value <= std::numeric_limits<i64>::max();
}

/// Applies one step. Nullopt if the result exceeds 64 bits, if an exact division leaves a
/// remainder, or if a product with a number of the config exceeds the exact range of doubles.
std::optional<Wide> applied(Wide left, const mapping::SizeStep& step, Wide right) {
  using mapping::SizeOp;
  constexpr Wide kExact = Wide{1} << 53;
  if (step.op == SizeOp::kOver && left % right != 0) return std::nullopt;
  const bool is_product = step.op == SizeOp::kTimes || step.op == SizeOp::kTimesDown;
  const bool rounds_up = step.op == SizeOp::kOverUp;
  const Wide value = is_product ? left * right : (left + (rounds_up ? right - 1 : 0)) / right;
  const bool is_double = step.op == SizeOp::kTimesDown && step.atom.kind == SizeAtom::Kind::kConfig;
  if (is_double && (value < 1 || value > kExact)) return std::nullopt;
  return fits(value) ? std::optional(value) : std::nullopt;
}

/// True for the config value 0 as one of several terms, where 0 is allowed.
bool is_zero_term(const SizeExpression& size, const mapping::SizeProduct& product) {
  return size.sum.size() > 1 && product.rest.empty() &&
         product.first.kind == SizeAtom::Kind::kConfig && product.first.name == "z";
}

/// Sum of products in wide integers; nullopt if a name has no size or a step no value.
std::optional<Wide> reference(const SizeExpression& size) {
  Wide total = 0;
  for (const auto& product : size.sum) {
    if (is_zero_term(size, product)) continue;
    auto value = value_of(product.first);
    for (const auto& step : product.rest) {
      const auto right = value_of(step.atom);
      if (!value || !right) return std::nullopt;
      value = applied(*value, step, *right);
      if (!value) return std::nullopt;
    }
    if (!value) return std::nullopt;
    total += *value;
    if (!fits(total)) return std::nullopt;
  }
  return total > 0 ? std::optional(total) : std::nullopt;
}

/// False for alternative spellings of the model's values, which the reference does not support.
bool is_plain(const SizeExpression& size) {
  return size.text.find("[0") == size.text.rfind("[0]");
}

}  // namespace

void size(std::string_view input) {
  const auto read = accepted([&] { return mapping::parse_size(input); });
  if (!read) return;
  holds(read->text == input, "the text is not what was read");
  const auto value = accepted([&] {
    return mapping::evaluate(*read, {&model_sizes(), axis_size});
  });
  if (!is_plain(*read)) return;
  const auto expected = reference(*read);
  holds(value.has_value() == expected.has_value(), "evaluated where it cannot be, or not");
  holds(!value || (*value >= 1 && *value == *expected), "another value");
}

}  // namespace shardtool::fuzz
