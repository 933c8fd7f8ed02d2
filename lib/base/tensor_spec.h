#pragma once

#include <string>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"

namespace shardtool {

/// Metadata of one tensor in a checkpoint.
struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;

  bool operator==(const TensorSpec&) const = default;
};

}  // namespace shardtool
