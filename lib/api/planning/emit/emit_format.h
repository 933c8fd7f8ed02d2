#pragma once

#include <optional>
#include <string_view>

namespace shardtool::api {

/// Programs that take a layout, or a reshard, as data.
enum class EmitFormat { kDTensor, kNcclM2n, kMooncake };
/// "dtensor", "nccl-m2n", "mooncake".
std::string_view to_string(EmitFormat format);
/// Returns the format of that name, or nullopt.
std::optional<EmitFormat> emit_format_named(std::string_view name);

}  // namespace shardtool::api
