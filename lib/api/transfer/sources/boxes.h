#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/shape.h"
#include "lib/index/holder_set.h"

namespace shardtool::api {

/// Reason why one offset per axis does not describe the part of every holder; nullopt if it does:
/// each part is one box without padding, and parts that begin at the same index are equal. Readers
/// that find a part by its offset need the latter. `ranks` are those of the holders.
std::optional<std::string> why_not_boxes(const index::HolderSet& holders,
                                         const std::vector<i64>& ranks);

/// Global index at which a holder's box begins on every axis. Requires a box.
Shape box_begin(const index::HolderSet& holders, int holder);

}  // namespace shardtool::api
