#pragma once

#include <string>
#include <vector>

#include "cli/print/html/json_view.h"

namespace shardtool::cli {

/// Devices that need the same memory, kind by kind.
struct DeviceGroup {
  size_t first = 0;  ///< index of the first one
  std::vector<i64> ranks;
  std::string name;  ///< "rank 3", "ranks 0-63"
};

/// Groups the "devices" of a plan, in the order of their first ones.
std::vector<DeviceGroup> equal_devices(const JsonView& devices);

/// Formats ascending ranks as "0-3, 8"; equal steps as "0, 8, .. 56".
std::string rank_list(const std::vector<i64>& ranks);

}  // namespace shardtool::cli
