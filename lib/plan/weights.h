#pragma once

#include <span>
#include <vector>

#include "lib/plan/holders.h"

namespace shardtool::plan {

/// Tensors with the same memory cost.
struct WeightGroup {
  int tensor_class = 0;  ///< defined by the caller
  int bits = 0;          ///< bits per element
  Holders held;          ///< by devices
  i64 tensors = 1;       ///< number of tensors
};

/// Weights of one device, in bytes.
struct DeviceWeights {
  i64 bytes = 0;              ///< sum of by_class
  std::vector<i64> by_class;  ///< n_classes entries, padding included
  i64 replicated_bytes = 0;   ///< elements that a lower rank has, too
  i64 padding_bytes = 0;      ///< bytes without an element
};

/// Weights on the devices 0 to n_devices - 1. For every set of tensors
///     sum of bytes - sum of replicated_bytes - sum of padding_bytes = bytes of the tensors
/// Requires ranks below n_devices, classes below n_classes, parts of whole bytes. Throws kLimit
/// when a sum overflows. Work is per group and holder, not per tensor.
std::vector<DeviceWeights> device_weights(i64 n_devices, int n_classes,
                                          std::span<const WeightGroup> groups);

}  // namespace shardtool::plan
