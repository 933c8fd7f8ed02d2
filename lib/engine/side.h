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

/// How a bias that is added to a sum over devices is stored, so that the sum has it once.
enum class SumBias {
  kAfterReduction,  ///< every device has all of it; it counts once
  kOwnShare,        ///< every device adds what it has: all or nothing
  kDivided,         ///< every device has an equal share and adds it
  kToDivide,        ///< every device has all of it and adds an equal share
};

/// A weight that no file has as it is: others are its parts.
struct UnpackedWeight {
  std::vector<size_t> members;
  bool is_turned = false;  ///< it is read by the columns of its shape: as [in, out]
};

/// One of the two models that are compared: the whole one, on a mesh of one device, or the shards.
struct Side : ops::WeightReader {
  const model::Model* model = nullptr;
  const mapping::ModelConfig* config = nullptr;
  std::span<const TensorSpec> tensors;
  ops::LayoutOf layouts;
  mesh::Mesh mesh;
  const WeightSource* weights = nullptr;
  std::function<SumBias(size_t tensor)> sum_bias;
  NameViewMap<size_t> by_name;                ///< of `tensors`
  std::map<size_t, UnpackedWeight> unpacked;  ///< by tensor

  bool is_turned(size_t tensor) const;
  const std::string& name(size_t tensor) const override { return tensors[tensor].name; }
  index::Region region(size_t tensor, i64 rank) const override;
  ops::StoredWeight read(size_t tensor, i64 rank) const override;
};

}  // namespace shardtool::engine
