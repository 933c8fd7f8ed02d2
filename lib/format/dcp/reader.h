#pragma once

#include "lib/format/reader.h"

namespace shardtool::format::dcp {

/// Reads folders of torch.distributed.checkpoint.
extern const Reader kReader;

}  // namespace shardtool::format::dcp
