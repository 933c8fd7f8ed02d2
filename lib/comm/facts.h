#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace shardtool::comm {

class Communicator;

/// Named values that are the same in every process of a launch. A value may be empty; no name
/// stands twice.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Throws `error` in every process when one has other facts than process 0, with notes that name
/// the first such process and what differs. Every process calls this.
void require_same(Communicator& comm, const Facts& mine, Error error);

}  // namespace shardtool::comm
