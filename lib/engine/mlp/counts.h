#pragma once

#include <string>

#include "shardtool/base/checked.h"

namespace shardtool::engine::mlp {

/// Calls of one device per kind of operation; of sends, those of all devices together where the
/// counts of a run are meant.
struct Counts {
  i64 all_gather = 0;
  i64 all_reduce = 0;
  i64 reduce_scatter = 0;
  i64 all_to_all = 0;
  i64 send = 0;

  bool operator==(const Counts&) const = default;
};

/// What was counted between `before` and `after`.
Counts operator-(const Counts& after, const Counts& before);

Counts& operator+=(Counts& sum, const Counts& counts);

/// "1 all_reduce, 2 all_gather", or "none".
std::string to_string(const Counts& counts);

}  // namespace shardtool::engine::mlp
