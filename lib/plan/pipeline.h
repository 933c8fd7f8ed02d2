#pragma once

#include <span>
#include <vector>

#include "lib/base/checked.h"

/// The time of the micro-batches of a step in the stages of a pipeline.
namespace shardtool::plan {

/// A stage of a pipeline, in microseconds. The stages of a model are in the order of its layers.
struct PipelineStage {
  double ahead = 0;    ///< forward pass of one micro-batch
  double back = 0;     ///< its backward pass
  double handoff = 0;  ///< to the next stage and, of the gradient, back; not used of the last stage
  double after = 0;    ///< once, after the last backward pass

  PipelineStage& operator+=(const PipelineStage& more);
};

/// Returns for each rank of a pipeline the end of its last backward pass, counted from the begin of
/// the first forward pass. Each of p ranks has one stage, or v virtual ones: stage s is on rank
/// s mod p. Every pass begins as soon as it may:
///
///     forward i of s    after the pass before it on its rank, and forward i of s - 1 with its
///                       hand-over
///     backward i of s   after the pass before it on its rank, and backward i of s + 1 with its
///                       hand-over
///
/// With v = 1 the schedule is 1F1B (PipeDream-Flush, arXiv 2006.09503; Narayanan et al. 2021,
/// arXiv 2104.04473, section 2.2.1; Megatron-LM's
/// forward_backward_pipelining_without_interleaving). Rank r does min(p - r - 1, m) forward passes,
/// then a forward and a backward pass in turn, then the backward passes that are left.
///
/// With v > 1 it is interleaved 1F1B (section 2.2.2 there; Megatron-LM's
/// forward_backward_pipelining_with_interleaving). A rank does forward passes in turns of p
/// micro-batches: all of them on its first stage, then on its second one, and so on; then those of
/// the next p. Backward passes are in the same order from its last stage to its first one. Rank r
/// does min(2 (p - r - 1) + (v - 1) p, m v) forward passes before the first backward one.
///
/// A hand-over delays its receiver and keeps no rank busy. Equal stages without hand-overs end
/// after (m v + p - 1) (ahead + back): the first rank idles for (p - 1) / (m v) of its passes.
///
/// Exact but for a relative 1e-11, in O(m v p). Once the rows of passes repeat themselves, whole
/// periods are added at once. After kMostPipelinePasses without a period the ends are an upper
/// bound, in which all passes take as long as those of the slowest rank took at last. Requires at
/// least one stage and micro-batch, v stages on every rank and, if v > 1, a multiple of p
/// micro-batches, which Megatron-LM requires too.
std::vector<double> pipeline_ends(std::span<const PipelineStage> stages, i64 micro_batches,
                                  i64 virtual_stages = 1);

/// Returns the time of a step: the latest end of a rank with what comes after it.
double pipeline_us(std::span<const PipelineStage> stages, i64 micro_batches,
                   i64 virtual_stages = 1);

/// Returns the micro-batches under way on each virtual stage of a rank, forward and not yet
/// backward, at all moments at which the rank has most of them, each set of numbers once. On a rank
/// with one stage these are min(p - r, m). On v stages they are min(2 (p - r - 1) + (v - 1) p + 1,
/// m v) together. Requires 0 <= rank < ranks, and what pipeline_ends requires.
std::vector<std::vector<i64>> most_under_way(i64 ranks, i64 rank, i64 micro_batches,
                                             i64 virtual_stages);

/// Limit on the passes that are followed one by one.
inline constexpr i64 kMostPipelinePasses = 1'000'000;

}  // namespace shardtool::plan
