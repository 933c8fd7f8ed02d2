#pragma once

#include <optional>
#include <string>

#include "lib/api/transfer/sources/logical_checkpoint.h"

namespace shardtool::api {

/// Returns the float type of a model's weights that its config.json names: "torch_dtype" or
/// "dtype", also in "text_config".
std::optional<Dtype> named_float_type(const mapping::ModelConfig& config);

/// Type of unpacked weights if config.json names none.
inline constexpr Dtype kDefaultFloat = Dtype::kBF16;

/// Shows a quantised checkpoint without its quantisation: every weight that is stored as codes
/// becomes a tensor of floats, computed while it is read (LogicalTensor::unpacked), of type `to`,
/// of named_float_type or of kDefaultFloat. The stored tensors go to LogicalCheckpoint::stored;
/// scales of activations and caches have no weight and go to LogicalCheckpoint::left_out. Other
/// tensors stay. `config_path` is that of config.json if it is not beside the weights, or empty.
///
/// Throws kUnsupported for a checkpoint without config.json or quantisation, the errors of
/// quantised_weights, for a number of 8 bits that has no scale, and for a weight that is stored in
/// two forms.
void dequantize(LogicalCheckpoint& checkpoint, const std::string& config_path,
                std::optional<Dtype> to);

}  // namespace shardtool::api
