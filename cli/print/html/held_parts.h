#pragma once

#include <string>
#include <vector>

#include "cli/print/html/page.h"
#include "lib/index/axis_map.h"

namespace shardtool::cli {

/// One device's part of one axis.
struct AxisPart {
  std::vector<index::Interval> held;
  i64 padding = 0;

  bool operator==(const AxisPart&) const = default;
};

/// Elements of an axis that are cut by themselves: the q of a fused q, k and v.
struct DrawnSection {
  index::Interval indices;
  std::string name;  ///< may be empty
  JsonView begin;    ///< of the document
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

/// Reads the sections of every axis of a tensor; none of an axis without them.
std::vector<std::vector<DrawnSection>> read_sections(const JsonView& tensor);

/// Names of the sections that have indices of `held`, "q" or "gate|up"; empty without names.
std::string names_of(const std::vector<DrawnSection>& sections, const index::Interval& held);

/// "[0, 4) x [8, 16) 2 padded": the part of every axis.
std::string slices_text(const std::vector<AxisPart>& axes);

/// Writes the parts of a tensor as a table that can be opened: ranks, bytes, and the slices of
/// every axis with the names of their sections.
void write_parts_table(Page& page, const JsonView& tensor, const std::vector<HeldPart>& parts);

}  // namespace shardtool::cli
