#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/transfer/sources/foreign_checkpoint.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transform.h"
#include "lib/engine/side.h"

namespace shardtool::api {

/// Layouts of a checkpoint's tensors on a mesh, and the reader of their bytes.
struct SideFiles {
  std::vector<TensorSpec> specs;
  std::vector<std::shared_ptr<const layout::Layout>> layouts;  ///< per spec
  mesh::Mesh mesh;
  std::vector<std::string> biases;  ///< per spec: how a bias of a sum is stored, or empty
  std::unique_ptr<engine::WeightSource> weights;
  /// Per spec: devices compute with more than they store, or in another order.
  std::vector<bool> is_gathered;
  std::vector<std::string> gathered = {};  ///< mesh axes of the gathers; empty without any
  /// Per spec of the checkpoint: layouts of the files, and the reader of every device's own part.
  /// Empty and null without gathers.
  std::vector<std::shared_ptr<const layout::Layout>> stored_layouts = {};
  std::unique_ptr<engine::WeightSource> stored_weights = nullptr;
  std::map<size_t, engine::UnpackedWeight> unpacked;  ///< by index of the unpacked spec, after
                                                      ///< those of the checkpoint

  bool has_divided_bias() const;
};

/// A checkpoint on one device; shards appear merged. It must outlive the result.
SideFiles whole_files(const LogicalCheckpoint& checkpoint);

/// Shards on the devices that hold them, laid out by the chosen mapping; default: that of their
/// manifest. Weights are gathered along axes of role "fsdp", and layouts are those to compute with.
/// They must outlive the result. Throws the errors of choosing a mapping, and
/// kShapeMismatch if a device does not hold the region of its layout.
SideFiles shard_files(const LogicalCheckpoint& shards, const MappingChoice& choice);

/// The same for shards without a manifest. Throws kShapeMismatch if they have misfits.
SideFiles shard_files(const ForeignCheckpoint& foreign);

/// One side of a comparison: tensors bound to their model's graph, which both sides share.
class BoundSide {
 public:
  /// The config must outlive it. Throws the errors of binding.
  BoundSide(std::shared_ptr<const model::Graph> graph, const mapping::ModelConfig& config,
            SideFiles files);
  BoundSide(const BoundSide&) = delete;
  BoundSide& operator=(const BoundSide&) = delete;

  const engine::Side& side() const { return side_; }
  /// Number of (tensor, device) parts; a packed weight counts as one.
  i64 parts() const;
  bool has_packed_weights() const { return !files_.unpacked.empty(); }
  const SideFiles& files() const { return files_; }

 private:
  SideFiles files_;  ///< including the unpacked weights
  model::Model model_;
  engine::Side side_;
};

}  // namespace shardtool::api
