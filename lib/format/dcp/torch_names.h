#pragma once

#include <string_view>

namespace shardtool::format::dcp {

/// Modules of the classes in `.metadata`.
inline constexpr std::string_view kMetadataModule = "torch.distributed.checkpoint.metadata";
inline constexpr std::string_view kFilesModule = "torch.distributed.checkpoint.filesystem";

}  // namespace shardtool::format::dcp
