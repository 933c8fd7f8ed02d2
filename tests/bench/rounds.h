#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "tests/bench/command_sample.h"

namespace shardtool::bench {

/// A command, and what its runs took.
struct Method {
  std::string name;
  std::string command;
  int expected_status = 0;
  std::vector<Sample> samples = {};
};

using Preparation = std::function<void()>;

/// The weights files below a folder are in the page cache, or not.
Preparation cached(const std::string& folder);
Preparation uncached(const std::string& folder);

/// The same, and nothing is where the methods write.
Preparation anew(const std::string& output, const Preparation& cache);

/// Runs all methods in turn, `rounds` times, each after `prepare`. A round before them warms up and
/// is not counted.
void measure(std::vector<Method>& methods, const Preparation& prepare, int rounds);

/// One line per method: medians, the largest memory, and the ratios to the first method of the same
/// round; `gigabytes` are what each of them reads.
void print_table(const std::string& title, const std::vector<Method>& methods, double gigabytes);

}  // namespace shardtool::bench
