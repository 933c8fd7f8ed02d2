#pragma once

#include <string>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::bench {

/// What one run of a whole command cost, start-up included.
struct Sample {
  double wall = 0;
  double cpu = 0;
  i64 peak_rss = 0;
};

/// Runs a shell command; ends the benchmark when it fails with another status than `expected`.
Sample run(const std::string& command, int expected = 0);

double median(std::vector<double> values);

}  // namespace shardtool::bench
