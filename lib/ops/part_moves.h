#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/device/workbench.h"
#include "lib/index/strided_copy.h"
#include "lib/ops/part.h"

/// Moves of features between parts, where the workbench runs: on an accelerator the values stay
/// there. A move of many copies is cheaper on the host, and is done there.
namespace shardtool::ops {

/// Features that lie side by side in two parts.
struct FeatureRun {
  i64 from = 0;
  i64 to = 0;
  i64 size = 0;
};

/// Returns the copies of features of `bytes` bytes, in the order of their runs. Runs of one size at
/// equal distances, one after another in the list, are one copy: every second feature, for example.
/// `tokens` is the outer loop.
std::vector<index::StridedCopy> copies_of(std::span<const FeatureRun> runs, i64 bytes,
                                          const index::Loop& tokens);

/// Copies runs of features of every token into `to`, whose other features stay as they are.
template <class N>
void copy_runs(kernels::Workbench& bench, const Part<N>& from, std::span<const FeatureRun> runs,
               i64 tokens, Part<N>& to);

/// Returns a part with these features: each the one at its position in `from`, or zero at -1.
template <class N>
Part<N> picked(kernels::Workbench& bench, const Part<N>& from, index::AxisMap features,
               const std::vector<i64>& positions, i64 tokens);

/// Returns what aligned() of part.h returns, moved where the workbench runs.
template <class N>
Part<N> aligned(kernels::Workbench& bench, const Part<N>& part, const index::AxisMap& wanted,
                i64 tokens, const std::string& what);

}  // namespace shardtool::ops
