#pragma once

#include "lib/format/reader.h"

namespace shardtool::format::safetensors {

/// One safetensors file, or the only files of a folder.
extern const Reader kReader;

}  // namespace shardtool::format::safetensors
