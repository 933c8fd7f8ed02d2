#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/base/error.h"

namespace shardtool::api {

/// The tensors that a mapping places, with their layouts in the same order.
struct PlacedTensors {
  std::vector<TensorSpec> specs;
  std::vector<const layout::Layout*> layouts;
};
PlacedTensors placed_tensors(const AppliedMapping& applied);

/// In words, where an error says that a family's graph is not this model's; nothing where it says
/// that the question is wrong.
std::optional<std::string> why_not_this_model(const Error& error);

}  // namespace shardtool::api
