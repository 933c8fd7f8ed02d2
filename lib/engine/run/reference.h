#pragma once

#include <map>
#include <utility>
#include <vector>

#include "lib/engine/diagnosis/layer_pair.h"
#include "lib/engine/run/fabric.h"
#include "lib/engine/run/run.h"

namespace shardtool::engine {

/// The reference for shards in one number system: the whole model on one device, or its cut on the
/// shards' devices, which forms the same partial sums and adds them in the same order. This process
/// simulates all of its devices. Their products read the whole model's bytes, each once.
///
/// Float sums have the shards' order if a device keeps the rows of an [in, out] matrix in the whole
/// model's order, as every layout does that cuts an axis into ranges.
template <class N>
class Reference {
 public:
  /// `side` is the whole model, or a CutSide; then `memories` must be empty. `side` and `inputs`
  /// must outlive this.
  Reference(const Side& side, const Inputs& inputs, const Memories& memories);

  /// Begins a layer of `side` with these inputs.
  void begin_layer(const SideLayer& layer, const Wholes<N>& values);
  void begin_step(size_t step);
  /// Products of the whole model, and blocks of their matrices; as in Run.
  void begin(const MatrixProduct& whole);
  void multiply(const MatrixProduct& whole, const MatrixBlock& block);
  void multiply_there(const MatrixProduct& whole, const MatrixBlock& block, const std::byte* there);
  void end(const MatrixProduct& whole);
  void end_step(size_t step);
  void forget(const std::string& name) { run_.forget(name); }

  const Run<N>& run() const { return run_; }
  const Fabric& fabric() const { return fabric_; }
  /// Assembles a whole value from the devices' parts; sums are reduced.
  Part<N> whole_of(Placed<N> parts, const std::vector<plan::Placement>& on);

 private:
  using Key = std::pair<MatrixProduct::Role, i64>;  ///< role and expert

  void multiply_part(const MatrixProduct& part, const MatrixBlock& block);

  const Side& side_;
  const Inputs& inputs_;
  Fabric fabric_;
  kernels::Workbench bench_;
  Run<N> run_;
  const SideLayer* layer_ = nullptr;
  std::map<Key, std::vector<MatrixProduct>> parts_;  ///< products of the step, one per device
};

}  // namespace shardtool::engine
