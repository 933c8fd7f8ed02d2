#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/check/data/data.h"

namespace shardtool::check {

/// Selection of tensors for reading data: part n of t, a fraction, or a number of bytes.
struct DataSubset {
  i64 part = 1;  ///< part `part` of `parts`, from 1
  i64 parts = 1;
  double fraction = 1;
  std::optional<i64> bytes;

  bool is_all() const { return parts == 1 && fraction == 1 && !bytes; }
};

/// Selects tensors of a subset by the hash of their names: the same on every machine, and the parts
/// of n/t together are all tensors. A fraction above 0 takes at least one tensor, if there is any
/// in the part. A budget of bytes takes the first tensor in the order of the hashes, and then each
/// that still fits.
std::vector<bool> choose(const DataSubset& subset, std::span<const DataTensor> tensors);

}  // namespace shardtool::check
