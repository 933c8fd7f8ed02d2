#pragma once

#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace shardtool::format::safetensors {

/// Throws kUnsupported with a hint when `head`, the first bytes of a file, match a format that
/// often has this file name by mistake: pickle, zip, GGUF, a git-LFS pointer, a web page. Only
/// compares bytes, without decoding.
void refuse_foreign_format(std::string_view head, const std::string& path);

}  // namespace shardtool::format::safetensors
