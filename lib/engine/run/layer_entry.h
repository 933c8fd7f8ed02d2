#pragma once

#include <span>

#include "lib/engine/run/part.h"
#include "lib/mesh/mesh.h"
#include "lib/model/flow/flow.h"

namespace shardtool::engine {

/// Returns the inputs of a layer on the devices of `own` that run it (`devices`): the features of
/// every whole value that `entry` gives them. For a sum that is not reduced yet, the first device
/// has all of it and the others have zeros. On an accelerator the values are cut there.
template <class N>
PlacedValues<N> layer_entry(const Wholes<N>& values, const model::Stream& entry,
                            const mesh::Mesh& mesh, std::span<const i64> devices,
                            std::span<const i64> own, i64 tokens, kernels::Workbench& bench);

}  // namespace shardtool::engine
