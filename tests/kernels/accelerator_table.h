#pragma once

#include <string>

#include "kernels/device/accelerator.h"

namespace shardtool::kernels {

/// Measures the works of an accelerator and returns a table in Markdown: the bytes that each reads
/// and writes, the median time of `rounds` runs, and its rate as a fraction of a copy's rate in the
/// same run. Arrays have about `bytes` bytes.
std::string accelerator_table(Accelerator& accelerator, i64 bytes, int rounds);

}  // namespace shardtool::kernels
