#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/engine/diagnosis/layer_pair.h"
#include "lib/engine/side.h"

namespace shardtool::engine {

/// The whole model on the shards' devices: each tensor is cut by the shards' layout from the whole
/// model's bytes when it is read, in the whole model's dtype. The shards are correct if this side
/// and theirs compute the same values.
///
/// C1 layouts, mesh and the order of ops are the shards'
/// C2 padding is zero, except for the copies of refined blocks
/// C3 a bias of a sum counts once, in the shares in which the shards store it
/// C4 scales and zero points that only the whole model has are on every device
class CutSide {
 public:
  /// All arguments must outlive it. Throws kUnsupported if an op has more tensors on one side, if
  /// the shards have scales for numbers that the whole model has quantised without scales, and if
  /// one tensor of the shards matches two of different dtypes.
  CutSide(const Side& whole, const Side& shards, std::span<const LayerPair> layers);
  ~CutSide();
  CutSide(const CutSide&) = delete;
  CutSide& operator=(const CutSide&) = delete;

  const Side& side() const { return side_; }

 private:
  class Source;

  void pair_tensors(const ops::BoundOp& of_whole, const ops::BoundOp& of_shards);
  void pair_scales(size_t of_whole, size_t of_shards);
  void add_whole(size_t of_whole, std::string name);
  void pair(size_t of_whole, size_t of_shards);

  const Side& whole_;
  const Side& shards_;
  std::vector<TensorSpec> tensors_;
  std::vector<std::optional<size_t>> whole_tensor_;     ///< by index of the shards' tensor
  std::vector<std::unique_ptr<layout::Layout>> added_;  ///< for tensors after the shards'
  std::unique_ptr<Source> source_;
  Side side_;
};

}  // namespace shardtool::engine
