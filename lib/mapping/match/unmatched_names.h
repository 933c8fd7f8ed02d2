#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"

namespace shardtool::mapping {

/// Names of the families of quantised tensors that cover the tensor.
std::vector<std::string> families_that_know(const TensorSpec& tensor);

/// Shortest prefix that all names share, such as "_orig_mod" or "module.model", without which the
/// mapping knows every one of them. Empty if there is none. `config` may be null.
std::string unknown_prefix(const Mapping& mapping, std::span<const TensorSpec> tensors,
                           const ModelConfig* config);

/// Advice on a name with a wrapper of PyTorch inside, such as "layers.0._orig_mod.norm.weight",
/// that the mapping knows without the wrapper; empty for other names. `config` may be null.
std::string advice_on_wrapper(const Mapping& mapping, const std::string& name,
                              const ModelConfig* config);

/// True if PEFT wraps a tensor of the model, "q_proj.base_layer.weight", to add an adapter to it:
/// neither the names nor the values are those of the model that was trained.
bool has_unmerged_adapter(std::span<const TensorSpec> tensors);

/// Advice for such tensors.
inline constexpr std::string_view kMergeAdapter =
    "names with '.base_layer.' are PEFT's for weights whose adapter is not added: in Python, save "
    "the model after merge_and_unload()";

}  // namespace shardtool::mapping
