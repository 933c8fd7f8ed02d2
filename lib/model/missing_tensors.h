#pragma once

#include <set>
#include <span>
#include <string>

#include "lib/base/checked.h"
#include "lib/base/tensor_spec.h"
#include "lib/model/bind.h"
#include "lib/ops/spelling.h"

namespace shardtool::model {

/// Tensors that the ops of a model require and its checkpoint lacks.
struct MissingTensors {
  i64 count = 0;
  std::string first;            ///< in the order of the ops
  std::set<std::string> names;  ///< of all, in every spelling that the graph allows
};

/// Returns the required tensors that are not among those the model was bound to. There are none for
/// a model of Misfits::kRefuse. Counts the experts of a layer one by one.
MissingTensors missing_tensors(const Model& model, std::span<const TensorSpec> tensors);

/// Returns the text of a glob without wildcards that shares the longest beginning with the name of
/// a tensor: the spelling that the checkpoint would use.
std::string likeliest_name(const std::string& glob, const ops::Spelling::NumberOf& number_of,
                           std::span<const TensorSpec> tensors);

}  // namespace shardtool::model
