#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/base/error.h"

namespace shardtool::api {

/// Tensors that a mapping places, with their layouts in the same order.
struct PlacedTensors {
  std::vector<TensorSpec> specs;
  std::vector<const layout::Layout*> layouts;
};
PlacedTensors placed_tensors(const AppliedMapping& applied);

/// Explains an error that means that a family's graph does not fit this model; nullopt for errors
/// of the request itself.
std::optional<std::string> why_not_this_model(const Error& error);

}  // namespace shardtool::api
