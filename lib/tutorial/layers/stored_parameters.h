#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/tutorial/layers/layers.h"

namespace shardtool::tutorial {

/// An array of a checkpoint in its stored type. A bias has one row.
struct StoredArray {
  Dtype dtype = Dtype::kF32;
  i64 rows = 0;
  i64 columns = 0;
  std::vector<std::byte> bytes;  ///< row-major
};
using StoredParameters = std::map<std::string, StoredArray>;

/// Decodes every array. In the field a number m 2^e is its residue, so that sums and products of
/// exact values stay exact; NaN and infinities are their bits. Requires is_computable dtypes.
template <Number T>
Parameters<T> numbers_of(const StoredParameters& stored);

}  // namespace shardtool::tutorial
