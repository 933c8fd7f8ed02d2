#pragma once

#include <span>
#include <vector>

#include "lib/plan/holders.h"

namespace shardtool::plan {

/// Tensors that are alike in everything that costs memory.
struct WeightGroup {
  int tensor_class = 0;  ///< of the caller's own
  int bits = 0;          ///< of one element
  Holders held;          ///< by devices
  i64 tensors = 1;       ///< how many there are
};

/// The weights of one device, in bytes.
struct DeviceWeights {
  i64 bytes = 0;              ///< the sum of by_class
  std::vector<i64> by_class;  ///< of n_classes, padding included
  i64 replicated_bytes = 0;   ///< elements that a lower rank has, too
  i64 padding_bytes = 0;      ///< that hold no element
};

/// What the devices 0 to n_devices - 1 hold. For every set of tensors
///     sum of bytes - sum of replicated_bytes - sum of padding_bytes = bytes of the tensors
/// Requires ranks below n_devices, classes below n_classes, parts of whole bytes. Throws kLimit
/// when a sum overflows. Work is per group and holder, not per tensor.
std::vector<DeviceWeights> device_weights(i64 n_devices, int n_classes,
                                          std::span<const WeightGroup> groups);

}  // namespace shardtool::plan
