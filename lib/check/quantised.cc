#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "lib/check/model.h"
#include "lib/check/scale_forms.h"

namespace shardtool::check {
namespace {

using shardtool::to_string;

/// Companion and its possible weights: one of them must exist.
struct CompanionOf {
  std::string_view companion;
  std::array<std::string_view, 3> weights;
};

constexpr auto kQuantisedFamilies = std::to_array<CompanionOf>({
    {".weight_scale_inv", {".weight", "", ""}},
    {".weight_scale_2", {".weight", "", ""}},
    {".weight_scale", {".weight", ".weight_packed", ""}},
    {".weight_zero_point", {".weight", ".weight_packed", ""}},
    {".weight_global_scale", {".weight_packed", ".weight", ""}},
    {".weight_shape", {".weight_packed", "", ""}},
    {".scales", {".qweight", ".weight", ""}},
    {".qzeros", {".qweight", "", ""}},
    {".g_idx", {".qweight", "", ""}},
    {"_scales", {"_blocks", "", ""}},
    {"_scale_inv", {"", "_weight", ".weight"}},
    {".scale", {".weight", "", ""}},
});

/// Selects names that are blocks or scales only with a certain dtype; others use them for other
/// tensors.
bool is_of_blocks(std::string_view end, Dtype dtype) {
  if (end == "_scales" || end == "_blocks") return dtype == Dtype::kU8;
  return end != ".scale" || dtype == Dtype::kF8E8M0;
}

/// Quantised weight and its possible scales: one of them must exist.
struct Needs {
  std::string_view weight;
  std::array<std::string_view, 4> scales;
};

constexpr auto kNeeds = std::to_array<Needs>({
    {".qweight", {".scales", "", "", ""}},
    {".weight_packed", {".weight_scale", "", "", ""}},
    {"_blocks", {"_scales", "", "", ""}},
});
constexpr Needs kScaledNeeds{".weight",
                             {".weight_scale_inv", ".weight_scale", ".scale_weight", ".scale"}};

/// True if one of the names that result from replacing the end of `name` exists.
bool has_any(const SpecsByName& tensors, std::string_view name, std::string_view end,
             std::span<const std::string_view> others) {
  return std::any_of(others.begin(), others.end(), [&](std::string_view other) {
    return !other.empty() && tensors.contains(with_end(name, end, other));
  });
}

void check_companion(const CheckedModel& model, const SpecsByName& tensors,
                     const TensorSpec& tensor, Findings& findings) {
  const std::string_view name = tensor.name;
  for (const CompanionOf& family : kQuantisedFamilies) {
    if (!name.ends_with(family.companion)) continue;
    if (!is_of_blocks(family.companion, tensor.dtype)) return;
    const bool bare =
        family.weights[0].empty() && tensors.contains(with_end(name, family.companion, ""));
    if (bare || has_any(tensors, name, family.companion, family.weights)) return;
    findings.add({.rule = CheckRule::kScaleAlone,
                  .message = "the weight that it belongs to is not there",
                  .file = model.config_file,
                  .tensor = tensor.name,
                  .expected = with_end(name, family.companion,
                                       family.weights[family.weights[0].empty() ? 1 : 0]),
                  .fix = "fetch the missing files"});
    return;
  }
}

void check_needs(const CheckedModel& model, const SpecsByName& tensors, const TensorSpec& tensor,
                 const Needs& needs, Findings& findings) {
  if (has_any(tensors, tensor.name, needs.weight, needs.scales)) return;
  findings.add(
      {.rule = CheckRule::kScaleMissing,
       .message = fmt::format("a weight of type {} without scales", to_string(tensor.dtype)),
       .file = model.config_file,
       .tensor = tensor.name,
       .expected = with_end(tensor.name, needs.weight, needs.scales[0]),
       .fix = "fetch the missing files"});
}

/// True if the weight's own elements are codes. Without a quantization_config, 8-bit floats are a
/// plain conversion without scales.
bool is_scaled(const CheckedModel& model, const TensorSpec& tensor) {
  if (tensor.shape.size() < 2 || model.config.find("quantization_config") == nullptr) return false;
  // Two 4-bit floats in a byte, used together with weights of 8-bit floats (DeepSeek-V4's experts).
  const bool is_pair =
      tensor.dtype == Dtype::kI8 && model.config.text("quantization_config.quant_method") == "fp8";
  return is_float8(tensor.dtype) || is_pair;
}

/// Puts the scale names that this model uses first, as the expected names of a finding.
Needs scaled_needs(const CheckedModel& model) {
  Needs needs = kScaledNeeds;
  const auto is_used = [&model](std::string_view scale) {
    return std::any_of(model.tensors.begin(), model.tensors.end(),
                       [scale](const TensorSpec& tensor) { return tensor.name.ends_with(scale); });
  };
  std::stable_partition(needs.scales.begin(), needs.scales.end(), is_used);
  return needs;
}

void check_weight(const CheckedModel& model, const SpecsByName& tensors, const TensorSpec& tensor,
                  const Needs& scaled, Findings& findings) {
  const std::string_view name = tensor.name;
  if (name.ends_with(scaled.weight) && is_scaled(model, tensor)) {
    return check_needs(model, tensors, tensor, scaled, findings);
  }
  for (const Needs& needs : kNeeds) {
    if (name.ends_with(needs.weight) && is_of_blocks(needs.weight, tensor.dtype)) {
      return check_needs(model, tensors, tensor, needs, findings);
    }
  }
}

}  // namespace

void check_quantised(const CheckedModel& model, Findings& findings) {
  SpecsByName tensors;
  tensors.reserve(model.tensors.size());
  for (const TensorSpec& tensor : model.tensors) tensors.emplace(tensor.name, &tensor);
  const Needs scaled = scaled_needs(model);
  const bool is_known = has_known_names(model.config);
  for (const TensorSpec& tensor : model.tensors) {
    if (!is_known) break;
    check_companion(model, tensors, tensor, findings);
    check_weight(model, tensors, tensor, scaled, findings);
  }
  check_scale_forms(model, tensors, findings);
}

}  // namespace shardtool::check
