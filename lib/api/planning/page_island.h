#pragma once

#include <string_view>

namespace shardtool::api {

/// Marks around the JSON document inside a page of `--html`. No "<" occurs in the document.
inline constexpr std::string_view kIslandBegin =
    R"(<script type="application/json" id="document">)";
inline constexpr std::string_view kIslandEnd = "</script>";

}  // namespace shardtool::api
