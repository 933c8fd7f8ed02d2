#pragma once

#include <span>
#include <vector>

#include "lib/model/flow/flow.h"

namespace shardtool::model {

/// Returns the devices that run a layer, ascending: those of the weight that the fewest devices
/// have, since other layers may share other weights. Experts, heads with tensors of their own and
/// biases do not count. A layer without weights runs on the devices of the layer before it, or of
/// the first one after it that has weights. `layer` is an index into the model's layers.
std::span<const i64> devices_of(const Model& model, size_t layer, const LayoutOf& layouts);

/// Returns the devices that run each layer. Where several stages of a pipeline have all weights of
/// a layer outside the blocks, one of them runs it: that of the block after it for the start of a
/// stack, else that of the layer before it.
std::vector<std::vector<i64>> running_devices(const Model& model, const LayoutOf& layouts);

/// True if a device is in both lists, which are ascending.
bool have_common(std::span<const i64> a, std::span<const i64> b);

/// Returns the number of pipeline stages: groups of layers that have no device in common, given the
/// devices that run each layer. Vision encoders and the ops outside of layers do not count.
i64 pipeline_stages(const Model& model, std::span<const std::vector<i64>> running);

/// Returns the moves from one stage of a pipeline to the next: all values that a layer passes, from
/// its devices to those of the layer after it. Every device sends its parts to the device that
/// differs from it only along `over`. Empty if a device has both layers. A decoder that begins on
/// the first stage again has its encoder's output from the last one.
std::vector<ValueMove> handoffs(std::span<const i64> senders, std::span<const i64> receivers,
                                const mesh::Mesh& mesh, const Stream& passed);

}  // namespace shardtool::model
