#pragma once

#include <string>

#include "lib/engine/golden.h"

namespace shardtool::api {

/// Loads the results of another implementation from a safetensors file:
///
///     input_ids                 [sequences, length] I64
///     hidden.0, hidden.1, ...   [sequences, length, embed] F32
///     logits                    [sequences, length, vocab] F32
///
/// Other tensors are ignored. Throws the errors of opening a checkpoint, and kShapeMismatch for a
/// file without input_ids and logits or with tensors of other shapes or dtypes.
engine::Golden load_golden(const std::string& path);

}  // namespace shardtool::api
