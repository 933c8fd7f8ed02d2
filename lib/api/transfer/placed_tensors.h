#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/base/error.h"
#include "lib/ops/placed_value.h"

namespace shardtool::api {

using SharedLayouts = std::vector<std::shared_ptr<const layout::Layout>>;

/// Tensors that a mapping places, with their layouts in the same order.
struct PlacedTensors {
  std::vector<TensorSpec> specs;
  SharedLayouts layouts;  ///< that devices compute with
  SharedLayouts stored;   ///< others along the axes of role "fsdp" only

  /// The functions refer to this object.
  ops::LayoutOf computed_layouts() const { return layout_of(layouts); }
  ops::LayoutOf stored_layouts() const { return layout_of(stored); }

 private:
  static ops::LayoutOf layout_of(const SharedLayouts& layouts) {
    return [&layouts](size_t tensor) -> const layout::Layout& { return *layouts[tensor]; };
  }
};
/// Throws the errors of mapping::computed_layouts.
PlacedTensors placed_tensors(const AppliedMapping& applied);

/// Explains an error that means that a family's graph does not fit this model; nullopt for errors
/// of the request itself.
std::optional<std::string> why_not_this_model(const Error& error);

}  // namespace shardtool::api
