#pragma once

#include <map>
#include <utility>
#include <vector>

#include "lib/engine/diagnosis/layer_pair.h"
#include "lib/engine/run/fabric.h"
#include "lib/engine/run/run.h"

namespace shardtool::engine {

/// The reference for shards in one number system: the whole model on one device, or its cut on the
/// shards' devices, which forms the same partial sums and adds them in the same order. All devices
/// belong to this process; their products read the whole model's bytes, each once.
///
/// Float sums have the shards' order if a device keeps the rows of an [in, out] matrix in the whole
/// model's order, as every layout does that cuts an axis into ranges.
template <class N>
class Reference {
 public:
  /// `side` is the whole model's or a CutSide's, and then `accelerator` is null. All of it outlives
  /// this.
  Reference(const Side& side, const Inputs& inputs, kernels::Accelerator* accelerator);

  /// The layer as `side` runs it, of what it begins with.
  void begin_layer(const SideLayer& layer, const Wholes<N>& values);
  void begin_step(size_t step);
  /// A product of the whole model, and blocks of its matrix: see Run.
  void begin(const Product& whole);
  void multiply(const Product& whole, const MatrixBlock& block);
  void multiply_there(const Product& whole, const MatrixBlock& block, const std::byte* there);
  void end(const Product& whole);
  void end_step(size_t step);

  const Run<N>& run() const { return run_; }
  const Fabric& fabric() const { return fabric_; }
  /// The whole of a value that lies so on the devices; sums are added up.
  Part<N> whole_of(Placed<N> parts, const std::vector<plan::Placement>& on);

 private:
  using Key = std::pair<Product::Role, i64>;  ///< and the expert

  void multiply_part(const Product& part, const MatrixBlock& block);

  const Side& side_;
  const Inputs& inputs_;
  Fabric fabric_;
  Run<N> run_;
  const SideLayer* layer_ = nullptr;
  std::map<Key, std::vector<Product>> parts_;  ///< of the step's products, by device
};

}  // namespace shardtool::engine
