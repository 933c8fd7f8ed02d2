#include "lib/api/proof/reference_headers.h"

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/shape.h"
#include "lib/model/packed_format.h"
#include "lib/model/weight_scales.h"

namespace shardtool::api {
namespace {

/// Maps the parts of quantised weights (scales and zero points, and all parts of packed weights) to
/// the weight's name.
std::map<std::string, std::string> weights_by_part(const LogicalCheckpoint& checkpoint) {
  const std::vector<TensorSpec> specs = checkpoint.specs();
  std::map<std::string, std::string> weights;
  std::set<std::string_view> names;
  for (const TensorSpec& spec : specs) names.insert(spec.name);
  for (const TensorSpec& spec : specs) {
    if (bits(spec.dtype) != 8) continue;
    std::vector<std::string> parts = model::scale_names(spec.name);
    parts.push_back(model::zero_point_name(spec.name));
    for (const std::string& part : parts) {
      if (names.contains(part)) weights[part] = spec.name;
    }
  }
  if (const auto config = checkpoint.config()) {
    for (const model::PackedWeight& weight : model::packed_weights(*config, specs)) {
      for (const size_t member : weight.members()) weights[specs[member].name] = weight.spec.name;
    }
  }
  return weights;
}

/// Names of a checkpoint's tensors to ignore in a comparison: parts of weights that `other` has in
/// plain numbers, and for packed weights the weights' own names.
std::set<std::string> parts_of_plain(const LogicalCheckpoint& checkpoint,
                                     const LogicalCheckpoint& other) {
  std::set<std::string> plain;
  for (const LogicalTensor& tensor : other.tensors) plain.insert(tensor.spec.name);
  std::set<std::string> parts;
  for (const auto& [part, weight] : weights_by_part(checkpoint)) {
    if (plain.contains(part) || !plain.contains(weight)) continue;
    parts.insert(part);
    parts.insert(weight);
  }
  return parts;
}

}  // namespace

void compare_headers(const LogicalCheckpoint& whole, const LogicalCheckpoint& shards,
                     std::span<const std::string> dropped, bool compares_values,
                     std::vector<check::Finding>& findings) {
  std::map<std::string, const TensorSpec*> expected;
  for (const LogicalTensor& tensor : whole.tensors) expected[tensor.spec.name] = &tensor.spec;
  const auto add = [&](check::CheckRule rule, const std::string& name, std::string message,
                       std::string found, std::string wanted) {
    check::Finding finding;
    finding.rule = rule;
    finding.message = std::move(message);
    finding.tensor = name;
    finding.found = std::move(found);
    finding.expected = std::move(wanted);
    finding.severity = check::Severity::kError;
    findings.push_back(std::move(finding));
  };
  std::set<std::string> seen(dropped.begin(), dropped.end());
  std::set<std::string> unasked;
  if (compares_values) {
    unasked = parts_of_plain(shards, whole);
    unasked.merge(parts_of_plain(whole, shards));
    seen.insert(unasked.begin(), unasked.end());
  }
  bool is_told = false;  // the way to compare other dtypes
  for (const LogicalTensor& tensor : shards.tensors) {
    const TensorSpec& spec = tensor.spec;
    seen.insert(spec.name);
    const auto found = expected.find(spec.name);
    if (found == expected.end()) {
      if (unasked.contains(spec.name)) continue;
      add(check::CheckRule::kMixedCheckpoints, spec.name,
          "the shards have a tensor that the reference lacks", "", "");
    } else if (found->second->shape != spec.shape) {
      add(check::CheckRule::kRankShape, spec.name,
          "a tensor of the shards has another shape than the reference's",
          shardtool::to_string(spec.shape), shardtool::to_string(found->second->shape));
    } else if (found->second->dtype != spec.dtype && !compares_values) {
      add(check::CheckRule::kRankDtype, spec.name,
          "a tensor of the shards has another dtype than the reference's",
          std::string(to_string(spec.dtype)), std::string(to_string(found->second->dtype)));
      if (!is_told) {
        findings.back().fix =
            "if --dtype or --dequantize made these shards, --values repeats that and compares";
      }
      is_told = true;
    }
  }
  for (const auto& [name, spec] : expected) {
    if (seen.count(name) > 0) continue;
    add(check::CheckRule::kMixedCheckpoints, name, "the shards lack a tensor of the reference", "",
        "");
  }
}

bool has_other_dtypes(const LogicalCheckpoint& whole, const LogicalCheckpoint& shards) {
  std::map<std::string, Dtype> dtypes;
  for (const LogicalTensor& tensor : whole.tensors) dtypes[tensor.spec.name] = tensor.spec.dtype;
  return std::any_of(shards.tensors.begin(), shards.tensors.end(), [&](const LogicalTensor& t) {
    const auto found = dtypes.find(t.spec.name);
    return found != dtypes.end() && found->second != t.spec.dtype;
  });
}

}  // namespace shardtool::api
