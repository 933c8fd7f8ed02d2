#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/model/flow/flow.h"
#include "lib/model/priced_pass.h"
#include "lib/model/weight_gathers.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::model {

/// A layer with its flow, the gathers before it, and the hand-overs to the devices of the next one.
struct PricedLayer {
  std::shared_ptr<const LayerFlow> flow;  ///< equal layers may have the same (SharedFlows)
  std::vector<ValueMove> handoffs;
  std::vector<WeightGather> gathers;
};

/// The passes of a model under one layout, for the prices of several workloads. Ranks fill the
/// profile's domains as plan::group_along says. Products run at its rate for the weights' number
/// type (ops::read_of). Without a profile there are no times.
///
/// Along token_axes every device has its own sequences. It computes their attention, and sends
/// every token to the devices of its experts and back, by an all_to_all each way among the expected
/// number of devices (plan::expected_destinations). Experts compute the expected number of tokens,
/// top_k / experts of all.
///
/// Along the axes `weights.over` every device has its own sequences, too, with all weights: before
/// a layer, its devices gather the weights that they store cut along these axes.
///
/// An encoder reads the prompt once, in the prefill. Layers after it then have one token per
/// sequence. Their decode steps attend to the prompt's positions.
class ForwardPass {
 public:
  /// `weights` must have layouts for every tensor that the model reads. The arguments must outlive
  /// the passes. Throws what flow throws. O(ops * devices).
  ForwardPass(const Model& model, std::span<const TensorSpec> tensors, const StoredWeights& weights,
              const mesh::Mesh& mesh);

  /// Returns the price of a pass for the tokens of the prompts that are not cached; they attend to
  /// the others, too. After a causal model the head counts one position per sequence. Throws kUsage
  /// for cached tokens of a model that is not causal.
  PhasePrice prefill(const ReplicaWorkload& workload, const plan::HardwareProfile* profile) const;
  /// Returns the price of a pass for one more token of each sequence.
  PhasePrice decode(const ReplicaWorkload& workload, const plan::HardwareProfile* profile) const;
  /// Returns the price of every layer of a prefill, in the order of the model's layers. A layer has
  /// the hand-over to the next one.
  std::vector<PhasePrice> prefill_layers(const ReplicaWorkload& workload,
                                         const plan::HardwareProfile* profile) const;
  /// Axes along which devices have tokens of their own (model::token_axes).
  const mesh::Over& own_tokens() const { return own_tokens_; }
  /// Number of groups of devices that have sequences of their own.
  i64 token_groups() const { return mesh::extent(mesh_, own_tokens_); }
  /// Number of pipeline stages (model::pipeline_stages), at least 1.
  i64 stages() const { return stages_; }

 private:
  i64 sequences(const ReplicaWorkload& workload) const;

  const Model& model_;
  const mesh::Mesh& mesh_;
  mesh::Over over_;        ///< axes along which weights are gathered
  mesh::Over own_tokens_;  ///< axes along which devices have tokens of their own
  std::vector<ops::WeightRead> reads_;
  std::vector<PricedLayer> layers_;
  i64 stages_ = 1;
};

/// Returns the collectives of weights in one step of training: each layer's weights are gathered
/// for the forward pass and again for the backward pass, and their gradients, in the weights'
/// dtype, are reduced and scattered to where the weights are stored. Sorted as those of a phase.
std::vector<CommRow> training_comm(const Model& model, std::span<const TensorSpec> tensors,
                                   const StoredWeights& weights, const mesh::Mesh& mesh,
                                   const plan::HardwareProfile* profile);

}  // namespace shardtool::model
