#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/exec/files/data_file.h"
#include "lib/index/value_shift.h"

namespace shardtool::api {

/// An element of a holder that has neither of the two values that it may have.
struct OtherValue {
  size_t holder = 0;
  i64 element = 0;  ///< of the holder
  i64 found = 0;
  i64 unsharded = 0;
  std::optional<i64> own;  ///< with the holder's shift
};

/// Values of a vector of integers in the shards of another tool.
struct StoredValues {
  std::vector<index::ValueShift> shifts;  ///< per holder; empty: all have the unsharded values
  std::vector<OtherValue> others;         ///< the first of every wrong holder
};

/// Tells for every holder of `shards` whether it stores the values of the unsharded tensor or its
/// own, which differ by the shifts that a split records. Both are in use: vLLM keeps g_idx and
/// weight_shape of the unsharded weight, text-generation-inference subtracts the shard's first
/// group. A holder with wrong values counts as the one that it has more values of. `whole` are
/// the unsharded values. Throws the errors of exec::load_shifted.
StoredValues stored_values(const LogicalTensor& shards, std::span<const index::ValueShift> own,
                           std::span<const i64> whole, std::span<const exec::SourceFile> files);

}  // namespace shardtool::api
