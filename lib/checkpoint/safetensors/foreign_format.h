#pragma once

#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace shardtool::checkpoint::safetensors {

/// Throws kUnsupported with a hint when `head`, the first bytes of a file, are those of a format
/// that often ends up under this name: pickle, zip, GGUF, a git-LFS pointer, a web page. Looks at
/// bytes only; nothing is decoded.
void refuse_foreign_format(std::string_view head, const std::string& path);

}  // namespace shardtool::checkpoint::safetensors
