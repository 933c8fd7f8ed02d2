#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/tensor_spec.h"
#include "lib/check/findings.h"
#include "lib/mapping/document/config.h"

namespace shardtool::check {

/// Model to compare with its config.json.
struct CheckedModel {
  std::span<const TensorSpec> tensors;
  const mapping::ModelConfig& config;
  std::string config_file;  ///< path for findings
};

/// Rules about tensors that the model lacks. They say nothing if a file could not be read, if a
/// rank is missing, or about an adapter, which has few of the model's tensors.
inline constexpr std::array kAbsenceRules{CheckRule::kMissingLayer,  CheckRule::kLayerTensor,
                                          CheckRule::kMissingExpert, CheckRule::kHeadMissing,
                                          CheckRule::kScaleAlone,    CheckRule::kScaleMissing,
                                          CheckRule::kTensorMissing};

/// ST04: compares heads, hidden size, vocabulary, layers, experts and tied tensors with
/// config.json. Compares sizes of the tensors that the model's graph reads (lib/family), packed
/// weights as the matrices that they hold, and names one that it needs and the model lacks; skips
/// sizes that config.json does not give, and model types without a graph.
void check_model(const CheckedModel& model, Findings& findings);

/// ST04: every quantised weight has its scales, and the zero points that config.json says, and
/// every scale its weight, of shapes that fit each other and the size of a group or block, and of
/// types that fit the format that config.json names; and a table of the tensor-parallel sizes at
/// which an equal cut falls inside a block.
void check_quantised(const CheckedModel& model, Findings& findings);

/// True unless config.json names a way to store quantised weights that no family of tensors
/// describes: their tensors have unknown names.
bool has_known_names(const mapping::ModelConfig& config);

/// Integer at the first of these paths that has one, also under "text_config".
std::optional<i64> config_integer(const mapping::ModelConfig& config,
                                  std::initializer_list<std::string_view> paths);

}  // namespace shardtool::check
