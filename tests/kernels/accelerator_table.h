#pragma once

#include <string>

#include "kernels/device/accelerator.h"

namespace shardtool::kernels {

/// What the works of an accelerator cost, as a table in Markdown: of each the bytes that it has to
/// read and write, the median time of `rounds` runs, and which fraction of a copy's rate, measured
/// in the same run, that is. Arrays have about `bytes` bytes.
std::string accelerator_table(Accelerator& accelerator, i64 bytes, int rounds);

}  // namespace shardtool::kernels
