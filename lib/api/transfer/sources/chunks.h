#pragma once

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/target_layout.h"

namespace shardtool::api {

/// Replaces the holders of every tensor by boxes that together hold each element once: a device's
/// part of several intervals becomes several holders, replicas are stored by the device that has
/// least so far, and padding is left out. Throws kUnsupported for tensors that other tensors are
/// stored with, and for values that differ between devices.
void store_in_chunks(const LogicalCheckpoint& source, TargetLayout& target);

}  // namespace shardtool::api
