#pragma once

#include "lib/format/reader.h"

namespace shardtool::format {

/// Outputs of shardtool: a manifest.json and the files that it lists.
extern const Reader kOutputReader;

}  // namespace shardtool::format
