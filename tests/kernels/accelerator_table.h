#pragma once

#include <functional>
#include <string>

#include "kernels/device/accelerator.h"

namespace shardtool::kernels {

/// Takes the lines of a table as they come.
using TableSink = std::function<void(const std::string&)>;

/// Measures the works of an accelerator and prints a table in Markdown: the bytes that each reads
/// and writes, the median time of at most `rounds` runs, and its rate as a fraction of a copy's
/// rate in the same run. Arrays have about `bytes` bytes and hold random numbers.
void accelerator_table(Accelerator& accelerator, i64 bytes, int rounds, const TableSink& print);

}  // namespace shardtool::kernels
