#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/check/data/data.h"
#include "lib/check/findings.h"
#include "lib/check/rank_names.h"
#include "lib/format/checkpoint.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::check {

/// Weights file of one device, without a manifest.
struct RankFile {
  RankName name;
  std::string shown;  ///< path for findings
  int number = 0;     ///< value of Slot::file
};

/// Tensor of one device.
struct RankTensor {
  TensorSpec spec;
  i64 rank = 0;
  exec::Slot slot;
};

/// Content of devices by the files' names.
struct ForeignShards {
  std::vector<RankFile> files;
  std::vector<RankTensor> tensors;
  std::vector<i64> extents = {};       ///< possible extents of whole tensors by config.json
  std::set<std::string> unruled = {};  ///< names without a rule by which to judge their shapes
};

/// Extents that config.json implies for the stored axes of all weights that the model's graph may
/// read, ascending. Empty for a model without a graph.
std::vector<i64> extents_of_model(const mapping::ModelConfig& config);

/// Applies the mapping to tensors of assumed whole shapes. The result lacks tensors that do not
/// resolve.
using Resolve = std::function<mapping::Resolution(std::span<const TensorSpec>)>;

/// ST03 without a manifest. No file records the whole tensor of a shard, but the whole tensor has a
/// shape from which the mapping makes exactly the shapes on the devices. The search tries shapes
/// that result from cutting up to two axes, or have extents from config.json. A match proves that
/// the shapes fit, but never which rows a device holds. Returns the tensors for reading data, with
/// all holders if their shapes are proved.
std::vector<DataTensor> check_foreign_shards(const ForeignShards& shards, const Resolve& resolve,
                                             Findings& findings);

/// ST0315: files of two numberings in one folder, unless a manifest names them.
void check_one_numbering(const format::Checkpoint& checkpoint, Findings& findings);

}  // namespace shardtool::check
