#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/check/data.h"
#include "lib/check/findings.h"
#include "lib/check/rank_names.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/mapping/resolve/resolve.h"

namespace shardtool::check {

/// A weights file of some device, without a manifest.
struct RankFile {
  RankName name;
  std::string shown;  ///< for findings
  int number = 0;     ///< of Slot::file
};

/// A tensor of one device.
struct RankTensor {
  TensorSpec spec;
  i64 rank = 0;
  exec::Slot slot;
};

/// What devices hold by the files' names.
struct ForeignShards {
  std::vector<RankFile> files;
  std::vector<RankTensor> tensors;
  std::vector<i64> extents = {};  ///< that whole tensors may have by config.json
};

/// The extents that a model's config.json speaks of: vocabulary, MLP, heads, fused QKV.
std::vector<i64> extents_of_model(const mapping::ModelConfig& config);

/// Applies the mapping to tensors of assumed whole shapes. A tensor that does not resolve is
/// absent.
using Resolve = std::function<mapping::Resolution(std::span<const TensorSpec>)>;

/// ST03 without a manifest. No file says what a shard is a part of, but a whole tensor has a shape
/// from which the mapping makes exactly the shapes that the devices hold: it is looked for among
/// those that come from cutting up to two axes, or have extents that config.json gives. Where there
/// is one, the shapes are proved to fit; which rows a device holds never is. Returns the tensors
/// for reading data, with all holders where their shapes are proved.
std::vector<DataTensor> check_foreign_shards(const ForeignShards& shards, const Resolve& resolve,
                                             Findings& findings);

/// ST0315: files of two numberings in one folder.
void check_one_numbering(const checkpoint::Checkpoint& checkpoint, Findings& findings);

}  // namespace shardtool::check
