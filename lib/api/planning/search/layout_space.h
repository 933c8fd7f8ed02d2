#pragma once

#include <string>
#include <vector>

#include "lib/api/plan_search.h"

namespace shardtool::api {

/// Limits of the space: sizes that no layout exceeds.
struct SpaceLimits {
  i64 layers = 1;
  i64 experts = 0;  ///< 0: a model without experts
  PinnedSizes pinned = {};
};

/// Returns all layouts on these numbers of devices: every factorisation into dp x pp x ep x tp with
/// pp <= layers and ep * tp <= experts where experts are distributed; each once, in the order of
/// devices, dp, pp, ep, tp.
std::vector<ServingLayout> layout_space(const std::vector<i64>& devices, const SpaceLimits& limits);

/// Returns the layouts of layout_space. Throws kUsage if there are none, with what excludes them:
/// the numbers of devices, the layers or the experts.
std::vector<ServingLayout> layouts_of_search(const std::vector<i64>& devices,
                                             const SpaceLimits& limits);

/// A layout without a layer for every pipeline stage.
struct TooDeepLayout {
  ServingLayout layout;
  std::string reason;
};

/// Returns the layouts that layout_space leaves out because they have more stages than the model
/// has layers, in its order.
std::vector<TooDeepLayout> too_deep_layouts(const std::vector<i64>& devices,
                                            const SpaceLimits& limits);

/// Groups layouts by what one replica is; those of a group differ in dp alone.
std::vector<std::vector<ServingLayout>> replicas_of(const std::vector<ServingLayout>& layouts);

/// Returns the threads of a search: each holds the layouts of all tensors of one replica.
i64 search_threads(size_t replicas);

}  // namespace shardtool::api
