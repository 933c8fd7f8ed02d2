#include "lib/mapping/document/size_expression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "lib/base/checked.h"
#include "lib/base/text.h"
#include "lib/mapping/document/formula.h"
#include "lib/mapping/document/identifier.h"

namespace shardtool::mapping {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::kMappingSchema,
              fmt::format("'{}' is not a size: {}", quote_for_message(text), why))
      .help(
          "a size is an integer or made of config.PATH, axes.NAME and integers with + * / and the "
          "rounding // /^ *_, such as \"config.hidden_size / config.num_attention_heads\"");
}

constexpr std::array<std::string_view, 5> kOps{"//", "/^", "*_", "/", "*"};
constexpr std::array<SizeOp, 5> kSizeOps{SizeOp::kOverDown, SizeOp::kOverUp, SizeOp::kTimesDown,
                                         SizeOp::kOver, SizeOp::kTimes};

SizeAtom atom_of(std::string_view whole, std::string_view text) {
  constexpr std::string_view kConfigPrefix = "config.";
  constexpr std::string_view kAxisPrefix = "axes.";
  for (const auto& [prefix, kind] : {std::pair{kConfigPrefix, SizeAtom::Kind::kConfig},
                                     std::pair{kAxisPrefix, SizeAtom::Kind::kAxis}}) {
    if (!text.starts_with(prefix)) continue;
    const std::string_view name = text.substr(prefix.size());
    if (!is_config_path(name)) refuse(whole, fmt::format("'{}' names nothing", text));
    return {kind, 0, std::string(name)};
  }
  const auto value = positive_integer(text);
  if (!value) {
    refuse(whole,
           fmt::format("'{}' is neither a positive integer nor config.PATH nor axes.NAME", text));
  }
  return {SizeAtom::Kind::kInteger, *value, {}};
}

SizeProduct product_of(std::string_view whole, const FormulaProduct& terms) {
  SizeProduct product{atom_of(whole, terms.front().operand), {}};
  for (const FormulaTerm& term : std::span(terms).subspan(1)) {
    const auto op = std::find(kOps.begin(), kOps.end(), term.op) - kOps.begin();
    product.rest.push_back({kSizeOps[static_cast<size_t>(op)], atom_of(whole, term.operand)});
  }
  return product;
}

std::vector<const SizeAtom*> atoms(const SizeExpression& size) {
  std::vector<const SizeAtom*> found;
  for (const SizeProduct& product : size.sum) {
    found.push_back(&product.first);
    for (const SizeStep& step : product.rest) found.push_back(&step.atom);
  }
  return found;
}

/// Returns the first config path of the expression that has no value, ignoring the fallback; or
/// null.
const SizeAtom* absent_value(const SizeExpression& size, const ModelConfig* config) {
  for (const SizeAtom* atom : atoms(size)) {
    if (atom->kind != SizeAtom::Kind::kConfig) continue;
    const nlohmann::json* value = config == nullptr ? nullptr : config->find(atom->name);
    if (value == nullptr || value->is_null()) return atom;
  }
  return nullptr;
}

[[noreturn]] void fail_absent(const SizeExpression& size, const std::string& path,
                              const ModelConfig* config) {
  if (config == nullptr) {
    throw Error(
        ErrorCode::kConfig,
        fmt::format("the size '{}' needs the model's config.json, and there is none", size.text))
        .help(
            "put config.json beside the weights, give it with --model-config, or write the size "
            "as a number: in the mapping, or with --set axes.NAME.size=N");
  }
  Error error(ErrorCode::kSizeExpression,
              fmt::format("the size '{}' reads '{}', which {} does not have", size.text, path,
                          config->file()));
  constexpr size_t kShown = 12;
  std::vector<std::string> keys = config->size_paths();
  const std::string hint = did_you_mean(path, keys);
  if (!hint.empty()) error.help(hint);
  const bool is_cut = keys.size() > kShown;
  if (is_cut) keys.resize(kShown);
  error.note("numbers in " + config->file(),
             fmt::format("{}{}", fmt::join(keys, ", "), is_cut ? ", ..." : ""));
  error.help(
      "name a number that the config has, write the number itself instead of the formula (in "
      "the mapping, or with --set axes.NAME.size=N), or give a default: {\"ref\": \"config." +
      path + "\", \"default\": NUMBER}");
  throw error;
}

i64 value_of(const SizeAtom& atom, const SizeScope& scope) {
  switch (atom.kind) {
    case SizeAtom::Kind::kInteger:
      return atom.value;
    case SizeAtom::Kind::kConfig:
      return scope.config->size(atom.name).value();
    case SizeAtom::Kind::kAxis:
      return scope.axis_size(atom.name);
  }
  throw Error(ErrorCode::kInternal, "unknown kind of size");
}

/// Returns true for a config value of 0 that is one of several terms: a model without those layers.
bool is_zero_term(const SizeExpression& size, const SizeProduct& product, const SizeScope& scope) {
  if (size.sum.size() == 1 || !product.rest.empty()) return false;
  if (product.first.kind != SizeAtom::Kind::kConfig) return false;
  return *scope.config->find(product.first.name) == 0;
}

i64 checked(const SizeExpression& size, std::optional<i64> value) {
  if (value) return *value;
  throw Error(ErrorCode::kSizeExpression, fmt::format("the size '{}' is above 2^63", size.text));
}

/// Multiplies by a number of the config and rounds down.
i64 times_down(const SizeExpression& size, i64 left, const SizeStep& step, const SizeScope& scope) {
  if (step.atom.kind != SizeAtom::Kind::kConfig) {
    return checked(size, checked_mul(left, value_of(step.atom, scope)));
  }
  const nlohmann::json& number = *scope.config->find(step.atom.name);
  const double product =
      number.is_number() ? std::floor(static_cast<double>(left) * number.get<double>()) : 0;
  constexpr double kMost = 9007199254740992;  // doubles above are not exact
  if (product >= 1 && product <= kMost) return static_cast<i64>(product);
  throw Error(ErrorCode::kSizeExpression,
              fmt::format("the size '{}' is not a positive integer: {} times '{}'", size.text, left,
                          step.atom.name))
      .note("found", quote_for_message(number.dump()));
}

i64 apply(const SizeExpression& size, i64 left, const SizeStep& step, const SizeScope& scope) {
  if (step.op == SizeOp::kTimesDown) return times_down(size, left, step, scope);
  const i64 right = value_of(step.atom, scope);
  if (step.op == SizeOp::kTimes) return checked(size, checked_mul(left, right));
  if (step.op == SizeOp::kOverUp) return ceil_div(left, right);
  if (step.op == SizeOp::kOverDown || left % right == 0) return left / right;
  throw Error(ErrorCode::kSizeExpression,
              fmt::format("the size '{}' is not exact: {} / {} leaves {}", size.text, left, right,
                          left % right))
      .note("config", config_values(size, scope.config))
      .help("a division in a size must have no remainder");
}

}  // namespace

SizeChain::Link SizeChain::enter(const std::string& axis, const Place& place) {
  if (const auto first = std::find(axes_.begin(), axes_.end(), axis); first != axes_.end()) {
    const auto circle = std::span(axes_).subspan(static_cast<size_t>(first - axes_.begin()));
    throw Error(ErrorCode::kSizeExpression,
                fmt::format("the size of axis '{}' depends on itself", axis))
        .at(place)
        .note("circle", fmt::format("{} -> {}", fmt::join(circle, " -> "), axis))
        .help("write one of these sizes as a number, or in terms of config.json");
  }
  if (axes_.size() == kLongest) {
    throw Error(ErrorCode::kLimit, fmt::format("the size of axis '{}' needs more than {} others, "
                                               "one for another",
                                               axes_.front(), kLongest))
        .at(place)
        .help("write the sizes in terms of config.json, or of fewer axes");
  }
  axes_.push_back(axis);
  return Link(*this);
}

SizeExpression integer_size(i64 value) {
  return {std::to_string(value), {{{SizeAtom::Kind::kInteger, value, {}}, {}}}, nullptr, {}};
}

SizeExpression parse_size(std::string_view text) {
  SizeExpression size{std::string(text), {}, nullptr, {}};
  for (const FormulaProduct& terms : split_formula(text, kOps))
    size.sum.push_back(product_of(text, terms));
  return size;
}

i64 evaluate(const SizeExpression& size, const SizeScope& scope) {
  if (const SizeAtom* absent = absent_value(size, scope.config)) {
    if (size.fallback != nullptr) return evaluate(*size.fallback, scope);
    fail_absent(size, absent->name, scope.config);
  }
  i64 total = 0;
  for (const SizeProduct& product : size.sum) {
    if (is_zero_term(size, product, scope)) continue;
    i64 value = value_of(product.first, scope);
    for (const SizeStep& step : product.rest) value = apply(size, value, step, scope);
    total = checked(size, checked_add(total, value));
  }
  if (total > 0) return total;
  throw Error(ErrorCode::kSizeExpression, fmt::format("the size '{}' is 0", size.text));
}

void add_axes(const SizeExpression& size, std::set<std::string>& names) {
  for (const SizeAtom* atom : atoms(size)) {
    if (atom->kind == SizeAtom::Kind::kAxis) names.insert(atom->name);
  }
  if (size.fallback != nullptr) add_axes(*size.fallback, names);
}

std::string config_values(const SizeExpression& size, const ModelConfig* config) {
  if (config == nullptr) return {};
  std::string text;
  for (const SizeAtom* atom : atoms(size)) {
    if (atom->kind != SizeAtom::Kind::kConfig) continue;
    const nlohmann::json* value = config->find(atom->name);
    if (value == nullptr || !value->is_number_integer()) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", atom->name, value->get<i64>());
  }
  if (!text.empty()) return text + " (from " + config->file() + ")";
  return size.fallback == nullptr ? "" : config_values(*size.fallback, config);
}

}  // namespace shardtool::mapping
