#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/name_map.h"
#include "lib/base/tensor_spec.h"
#include "lib/engine/weights/weight_source.h"
#include "lib/mapping/document/config.h"
#include "lib/mesh/mesh.h"
#include "lib/model/bind.h"
#include "lib/model/flow/flow.h"
#include "lib/ops/body.h"

namespace shardtool::engine {

using ops::Inputs;

/// Storage of a bias that is added to a sum over devices. The sum must contain the bias once.
enum class SumBias {
  kAfterReduction,  ///< every device has all of it; it is added once
  kOwnShare,        ///< every device adds what it stores: one has all of it, the others zeros
  kDivided,         ///< every device stores an equal share and adds it
  kToDivide,        ///< every device stores all of it and adds an equal share
};

/// A weight that is not stored itself but unpacked from other tensors.
struct UnpackedWeight {
  std::vector<size_t> members;
  bool is_turned = false;  ///< stored as [in, out]: its columns are read as rows
};

/// One of the two models that are compared: the whole model on a mesh of one device, or the shards.
struct Side : ops::WeightReader {
  const model::Model* model = nullptr;
  const mapping::ModelConfig* config = nullptr;
  std::span<const TensorSpec> tensors;
  ops::LayoutOf layouts;
  mesh::Mesh mesh;
  const WeightSource* weights = nullptr;
  std::function<SumBias(size_t tensor)> sum_bias;
  NameViewMap<size_t> by_name;                ///< index into `tensors`
  std::map<size_t, UnpackedWeight> unpacked;  ///< by tensor
  /// Layouts and bytes as they are in the files, if devices gather weights from several files
  /// before they compute (FSDP); else null.
  ops::LayoutOf stored_layouts;
  const WeightSource* stored_weights = nullptr;

  /// Returns a side that reads every device's part as it is in the device's file, before devices
  /// gather. What this side refers to must outlive it.
  Side stored() const;
  bool is_turned(size_t tensor) const;
  const std::string& name(size_t tensor) const override { return tensors[tensor].name; }
  index::Region region(size_t tensor, i64 rank) const override;
  ops::StoredWeight read(size_t tensor, i64 rank) const override;
  /// As read(), for one index of the first axis in the device's part: the result lacks that axis.
  ops::StoredWeight read_row(size_t tensor, i64 rank, i64 row) const;
};

}  // namespace shardtool::engine
