#pragma once

#include <string>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::bench {

/// Cost of one run of a command, start-up included.
struct Sample {
  double wall = 0;
  double cpu = 0;
  i64 peak_rss = 0;
};

/// Runs a shell command; ends the benchmark if its status is not `expected`.
Sample run(const std::string& command, int expected = 0);

double median(std::vector<double> values);

}  // namespace shardtool::bench
