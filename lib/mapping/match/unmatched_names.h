#pragma once

#include <span>
#include <string>
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

}  // namespace shardtool::mapping
