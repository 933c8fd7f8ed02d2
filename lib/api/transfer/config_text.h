#pragma once

#include <string>

#include "lib/base/checked.h"
#include "lib/base/dtype.h"

namespace shardtool::api {

/// Text of a config.json whose "torch_dtype" or "dtype" names this float type, also inside objects
/// whose keys end in "_config"; everything else stays as it is, byte for byte. Adds "torch_dtype"
/// if the config itself has neither. `file` is for messages. Throws kConfig for invalid JSON.
std::string with_dtype(const std::string& text, Dtype dtype, const std::string& file);

/// Text of a config.json without its "quantization_config"; everything else stays as it is, byte
/// for byte. Throws kConfig for invalid JSON.
std::string without_quantization(const std::string& text, const std::string& file);

/// Upper limit for the bytes of a config.json.
inline constexpr i64 kMaxConfigBytes = 64 << 20;

}  // namespace shardtool::api
