#pragma once

#include <map>
#include <span>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/model/bind.h"
#include "lib/ops/placed_value.h"
#include "lib/ops/pricing.h"

namespace shardtool::model {

/// Weights that devices store cut along mesh axes, and gather along them to compute (FSDP).
struct StoredWeights {
  /// Axes along which devices compute with equal weights, each for its own sequences. Weights that
  /// are stored cut along them are gathered.
  mesh::Over over;
  ops::LayoutOf layouts;   ///< as they are stored
  ops::LayoutOf computed;  ///< as devices compute with them
  /// Packed weights by tensor; others are read as the numbers that are stored.
  std::map<size_t, ops::WeightRead> packed = {};

  ops::WeightRead read(size_t tensor, std::span<const TensorSpec> tensors) const;
};

/// One gather before a layer computes.
struct WeightGather {
  /// Axes whose devices together have what each of them needs: those that cut the weights and are
  /// gathered, and others if the stored parts do not lie inside the computed ones. Over
  /// ["fsdp", "tp"], fsdp first, a device's half over tp lies on all devices along both.
  mesh::Over over;
  /// Payload of the all_gather (plan::Collective). Its busiest device receives what the move from
  /// the stored layouts to the computed ones gives the device that lacks most.
  i64 bytes = 0;
};

/// The gathers of the layers of a model. The arguments of the constructor and the layers must
/// outlive it.
class WeightGathers {
 public:
  WeightGathers(std::span<const TensorSpec> tensors, const StoredWeights& weights,
                const mesh::Mesh& mesh)
      : tensors_(tensors), weights_(weights), mesh_(mesh) {}

  /// Returns one gather for each set of axes over which weights of the layer are gathered: in one
  /// call, as engines do. O(weights * devices), the first time for each layout.
  std::vector<WeightGather> of(const Layer& layer);

  /// Returns, by rank, the most bytes of gathered weights that a device holds at one time, beside
  /// those that it stores: those of one of the layers that it runs (running_devices). With ZeRO 3,
  /// `replicas` of the mesh, and its devices along those of `token_axes` that do not cut a weight,
  /// hold each device's part of the weight together, flat and in equal parts; the result is then of
  /// the device that holds least.
  std::vector<i64> largest(const Model& model, i64 replicas = 1, const mesh::Over& token_axes = {});

 private:
  /// Weights of a layer with the same layouts and width.
  struct Alike {
    const layout::Layout* stored = nullptr;
    const layout::Layout* computed = nullptr;
    i64 bits = 0;  ///< of an element

    auto operator<=>(const Alike&) const = default;
  };
  /// Missing parts of a layer's weights that are gathered over the same axes.
  struct Received {
    mesh::Over over;
    std::vector<i64> bits;  ///< by rank
  };

  const std::map<Alike, i64>& weights_of(const Layer& layer);  ///< their numbers
  std::vector<Received> received(const Layer& layer, i64 replicas = 1,
                                 const mesh::Over& token_axes = {});
  const std::vector<i64>& missing(const Alike& weight, i64 replicas);
  const mesh::Over& gathered_over(const Alike& weight);

  std::span<const TensorSpec> tensors_;
  const StoredWeights& weights_;
  const mesh::Mesh& mesh_;
  std::map<const Layer*, std::map<Alike, i64>> weights_of_;
  /// Elements by rank; by layouts and number of replicas.
  std::map<std::pair<Alike, i64>, std::vector<i64>> missing_;
  std::map<Alike, mesh::Over> gathered_over_;
};

}  // namespace shardtool::model
