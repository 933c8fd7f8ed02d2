#pragma once

#include <span>
#include <vector>

#include "lib/base/checked.h"

/// The time of the micro-batches of a step in the stages of a pipeline.
namespace shardtool::plan {

/// A stage of a pipeline, in microseconds.
struct PipelineStage {
  double ahead = 0;    ///< forward pass of one micro-batch
  double back = 0;     ///< its backward pass
  double handoff = 0;  ///< to the next stage and, of the gradient, back; not used of the last stage
  double after = 0;    ///< once, after the last backward pass
};

/// Returns for each stage the end of its last backward pass, counted from the begin of the first
/// forward pass, in the schedule 1F1B (PipeDream-Flush, arXiv 2006.09503; Narayanan et al. 2021,
/// arXiv 2104.04473, section 2.2.1; Megatron-LM's
/// forward_backward_pipelining_without_interleaving). Stage s of p does min(p - s - 1, m) forward
/// passes, then a forward and a backward pass in turn, then the backward passes that are left.
/// Every pass begins as soon as it may:
///
///     forward i of s    after the pass before it on s, and forward i of s - 1 with its hand-over
///     backward i of s   after the pass before it on s, and backward i of s + 1 with its hand-over
///
/// A hand-over delays its receiver and keeps no stage busy. Equal stages without hand-overs end
/// after (m + p - 1) (ahead + back): the first one idles for (p - 1) / m of its passes.
///
/// Exact but for a relative 1e-11, in O(m p). Once the rows of passes repeat themselves, whole
/// periods are added at once. After kMostPipelinePasses without a period the ends are an upper
/// bound, in which every row takes as long as the slowest stage took for the last one. Requires at
/// least one stage and micro-batch.
std::vector<double> pipeline_ends(std::span<const PipelineStage> stages, i64 micro_batches);

/// Returns the time of a step: the latest end of a stage with what comes after it.
double pipeline_us(std::span<const PipelineStage> stages, i64 micro_batches);

/// Limit on the passes that are followed one by one.
inline constexpr i64 kMostPipelinePasses = 1'000'000;

}  // namespace shardtool::plan
