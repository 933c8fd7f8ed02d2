#pragma once

#include <string>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"

namespace shardtool {

/// What a checkpoint says about one tensor, without its data.
struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
};

}  // namespace shardtool
