#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace shardtool::comm {

class Communicator;

/// Named values that are the same in every process of a launch. A value may be empty; names are
/// unique.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Throws `error` in every process when facts differ from those of process 0, with notes that name
/// the first such process and the differences. Every process calls this.
void require_same(Communicator& comm, const Facts& mine, Error error);

}  // namespace shardtool::comm
