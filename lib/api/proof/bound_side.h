#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/api/transfer/foreign_checkpoint.h"
#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/engine/side.h"

namespace shardtool::api {

/// Where the tensors of a checkpoint lie on a mesh, and how their bytes are read.
struct SideFiles {
  std::vector<TensorSpec> specs;
  std::vector<std::shared_ptr<const layout::Layout>> layouts;  ///< per spec
  mesh::Mesh mesh;
  std::vector<std::string> biases;  ///< per spec: how a bias of a sum is added once, or empty
  std::unique_ptr<engine::WeightSource> weights;
  std::map<size_t, engine::UnpackedWeight> unpacked;  ///< by spec: behind those of the checkpoint

  bool has_divided_bias() const;
};

/// A checkpoint on one device; shards as if they were merged. It must outlive the result.
SideFiles whole_files(const LogicalCheckpoint& checkpoint);

/// Shards on the devices that hold them: as the mapping says, which is that of their manifest
/// unless another one is chosen. They must outlive the result. Throws what choosing a mapping
/// throws, and kShapeMismatch when a device holds something else than its layout gives it.
SideFiles shard_files(const LogicalCheckpoint& shards, const MappingChoice& choice);

/// The same for shards without a manifest. Throws kShapeMismatch where they have misfits.
SideFiles shard_files(const ForeignCheckpoint& foreign);

/// One side of a comparison: tensors bound to the graph of their model. Both sides share a graph.
class BoundSide {
 public:
  /// The config must outlive it. Throws what binding throws.
  BoundSide(std::shared_ptr<const model::Graph> graph, const mapping::ModelConfig& config,
            SideFiles files);
  BoundSide(const BoundSide&) = delete;
  BoundSide& operator=(const BoundSide&) = delete;

  const engine::Side& side() const { return side_; }
  /// What devices have of tensors; a packed weight counts as one.
  i64 parts() const;
  bool has_packed_weights() const { return !files_.unpacked.empty(); }
  const SideFiles& files() const { return files_; }

 private:
  SideFiles files_;  ///< with the packed weights unpacked
  model::Model model_;
  engine::Side side_;
};

}  // namespace shardtool::api
