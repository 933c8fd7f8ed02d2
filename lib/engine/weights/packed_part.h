#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lib/engine/weights/weight_source.h"
#include "lib/index/region.h"
#include "lib/model/flow/flow.h"
#include "lib/model/packed_format.h"

namespace shardtool::engine {

/// A packed weight on one device.
struct PackedPart {
  const model::PackedWeight& weight;
  std::span<const TensorSpec> tensors;
  const ops::LayoutOf& layouts;
  const WeightSource& stored;
  index::AxisMap inputs, outputs;  ///< of the device's part
};

/// Reads stored rows of `columns` numbers each from one of the weight's tensors, as its dtype or as
/// another one of the same size. T is float or double. Throws the errors of reading.
template <class T>
std::vector<T> read_numbers(const PackedPart& part, const StoredRows& rows, i64 columns,
                            std::optional<Dtype> instead = {});

}  // namespace shardtool::engine
