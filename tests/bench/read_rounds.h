#pragma once

#include <string>
#include <vector>

#include "shardtool/base/checked.h"

namespace shardtool::bench {

/// A command that reads files, and what its runs took.
struct Method {
  std::string name;
  std::string command;
  int expected_status = 0;
  std::vector<double> walls = {};
  std::vector<double> ratios = {};  ///< speed against the first method of the same round
  std::vector<double> cpu = {};
  i64 peak_rss = 0;
};

/// Runs all methods in turn, `rounds` times, with the weights files below `folder` in the page
/// cache or not. A round before them warms up and is not counted.
void measure(std::vector<Method>& methods, const std::string& folder, bool cold, int rounds);

/// One line per method; `gigabytes` are what each of them reads.
void print_table(const std::string& title, const std::vector<Method>& methods, double gigabytes);

}  // namespace shardtool::bench
