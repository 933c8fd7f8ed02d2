#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "tests/bench/command_sample.h"

namespace shardtool::bench {

/// A command with the samples of its runs.
struct Method {
  std::string name;
  std::string command;
  int expected_status = 0;
  std::vector<Sample> samples = {};
};

using Preparation = std::function<void()>;

/// Preparations with the weights files below a folder in the page cache, or not.
Preparation cached(const std::string& folder);
Preparation uncached(const std::string& folder);

/// The same, and deletes the methods' output.
Preparation anew(const std::string& output, const Preparation& cache);

/// Runs all methods in turn for `rounds` rounds, each after `prepare`. A warm-up round is not
/// counted.
void measure(std::vector<Method>& methods, const Preparation& prepare, int rounds);

/// Prints one line per method: medians, the largest memory, and the ratios to the first method of
/// the same round; each method reads `gigabytes`.
void print_table(const std::string& title, const std::vector<Method>& methods, double gigabytes);

}  // namespace shardtool::bench
