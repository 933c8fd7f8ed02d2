#pragma once

#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/exec/resources.h"

namespace shardtool::api {

struct BenchIoOptions {
  std::string folder = ".";  ///< on the file system to measure
  i64 bytes = 1 << 30;       ///< of the checkpoint that is made there; rounded to kBenchUnit
  i64 rounds = 5;  ///< each does every measure once, so that all share the load of that time
  exec::Resources resources;  ///< as of a split
};

/// Minimum and unit of BenchIoOptions::bytes.
inline constexpr i64 kBenchUnit = 1 << 20;

/// One measure, compared with split.
struct IoMeasure {
  std::string name;                     ///< "copy", "direct_write", ..., "split_warm", "split_cold"
  std::string what;                     ///< description of the measure
  std::vector<double> seconds;          ///< per round
  std::vector<double> cpu_seconds;      ///< user and kernel time of all threads, per round
  double bytes_per_second = 0;          ///< at the median of the seconds
  double cpu_seconds_per_gigabyte = 0;  ///< median, per 10^9 bytes
  /// Median over the rounds of (its seconds / the seconds of split): above 1, split was faster.
  double warm_split = 0;
  double cold_split = 0;
};

struct BenchIoReport {
  std::string folder;
  i64 bytes = 0;
  i64 rounds = 0;
  bool direct_io = true;  ///< false: not supported there, all transfers use the page cache
  std::vector<IoMeasure> measures;
};

/// Creates a checkpoint in a hidden folder inside `folder`, measures plain transfers of its bytes
/// and its split over four devices (half by rows, half by columns, with digests and syncs). Always
/// deletes the folder. Throws kUsage for sizes and rounds below 1, kNoSpace unless two copies fit,
/// kInterrupted, and the errors of lib/store.
BenchIoReport bench_io(const BenchIoOptions& options);

}  // namespace shardtool::api
