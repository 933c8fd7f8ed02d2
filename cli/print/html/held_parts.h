#pragma once

#include <string>
#include <vector>

#include "cli/print/html/json_view.h"
#include "lib/index/axis_map.h"

namespace shardtool::cli {

/// One device's part of one axis.
struct AxisPart {
  std::vector<index::Interval> held;
  i64 padding = 0;

  bool operator==(const AxisPart&) const = default;
};

/// A part of a tensor and the devices that hold it.
struct HeldPart {
  std::vector<i64> ranks;
  std::vector<AxisPart> axes;
  size_t first_shard = 0;  ///< index into the shards

  bool operator==(const HeldPart&) const = default;
};

/// Reads the "shards" of a tensor. Equal ones are one part. Throws kInternal for a shard that has
/// another number of axes than the tensor.
std::vector<HeldPart> read_parts(const JsonView& tensor);

/// "[0, 4) x [8, 16) 2 padded": the part of every axis.
std::string slices_text(const std::vector<AxisPart>& axes);

}  // namespace shardtool::cli
