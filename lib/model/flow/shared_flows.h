#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lib/model/flow/flow.h"
#include "lib/ops/pricing.h"

namespace shardtool::model {

/// The flows of a model's layers for prices. Layers that are walked with equal inputs share one
/// flow: the same ops on weights that have the same layouts and cost as much to read, run by the
/// same devices, after values that are placed alike. The steps of a shared flow name the ops of the
/// first of its layers.
///
/// The arguments of the constructor must outlive the object and its flows.
class SharedFlows {
 public:
  /// `reads` has the cost of every tensor. The other arguments are those of model::flow.
  SharedFlows(const Model& model, std::span<const ops::WeightRead> reads, const LayoutOf& layouts,
              const mesh::Mesh& mesh, const mesh::Over& own_tokens)
      : model_(model), reads_(reads), layouts_(layouts), mesh_(mesh), own_tokens_(own_tokens) {}

  /// Returns what model::flow returns, and throws what it throws. `stream` has the layer's inputs
  /// and receives its results.
  std::shared_ptr<const LayerFlow> of(size_t layer, Stream& stream);

 private:
  struct Walked {
    size_t layer = 0;
    Stream before;
    Stream after;
    std::shared_ptr<const LayerFlow> flow;
  };

  bool is_alike(const Walked& walked, size_t layer, const Stream& stream) const;
  bool are_alike(const BoundOp& a, const BoundOp& b) const;
  bool are_alike(const BoundWeight& a, const BoundWeight& b) const;

  const Model& model_;
  std::span<const ops::WeightRead> reads_;
  const LayoutOf& layouts_;
  const mesh::Mesh& mesh_;
  const mesh::Over& own_tokens_;
  std::vector<Walked> walked_;
};

}  // namespace shardtool::model
