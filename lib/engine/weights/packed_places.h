#pragma once

#include <optional>
#include <vector>

#include "lib/engine/run/part_axis.h"
#include "lib/engine/weights/packed_part.h"

namespace shardtool::engine {

/// Indices of a device's codes, scales or zeros for the rows and columns of its weight; kPadding
/// for padding.
struct PartPlaces {
  std::vector<i64> rows, columns;

  /// True if column c of the weight is column c of the part for every c.
  bool has_weight_columns() const;
  /// Range from the first to the last row in use; empty if all are padding.
  index::Interval used_rows() const;
};

/// Locates the numbers behind consecutive rows of a packed weight, in stored order, by the layouts
/// of its parts. Words and groups that a cut divides may be shared or refined.
class PackedPlaces {
 public:
  /// Reads the group of every input if the checkpoint stores it. The part must outlive this object.
  PackedPlaces(const PackedPart& part, const StoredRows& rows);

  /// Throw kDataMismatch for a number that the device lacks, kUnsupported for scales that are not
  /// one per group of inputs.
  PartPlaces codes() const;
  PartPlaces scales() const;
  PartPlaces zeros() const;

 private:
  enum class Axis { kInputs, kOutputs };

  bool are_rows(Axis axis) const;
  index::Interval range(Axis axis) const;
  const index::AxisMap& map(Axis axis) const;
  std::optional<size_t> axis_of(size_t tensor, Axis axis) const;
  std::vector<i64> places(size_t tensor, Axis axis, i64 codes_per_number) const;
  std::vector<i64> groups(size_t tensor) const;
  PartPlaces by_rows(std::vector<i64> inputs, std::vector<i64> outputs) const;
  i64 codes_per_number(Axis axis) const;
  i64 group_size() const;

  const PackedPart& part_;
  const StoredRows rows_;
  std::vector<double> said_groups_;  ///< of the inputs in range; empty: in order
};

}  // namespace shardtool::engine
