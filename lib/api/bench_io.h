#pragma once

#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/exec/resources.h"

namespace shardtool::api {

struct BenchIoOptions {
  std::string folder = ".";   ///< on the file system to measure
  i64 bytes = 1 << 30;        ///< of the checkpoint that is made there; rounded to kBenchUnit
  i64 rounds = 5;             ///< every measure once each, so that all meet the same weather
  exec::Resources resources;  ///< as of a split
};

/// The least and the unit of BenchIoOptions::bytes.
inline constexpr i64 kBenchUnit = 1 << 20;

/// One thing that was measured, and how far split came to it.
struct IoMeasure {
  std::string name;                     ///< "copy", "direct_write", ..., "split_warm", "split_cold"
  std::string what;                     ///< the same in words
  std::vector<double> seconds;          ///< of every round
  std::vector<double> cpu_seconds;      ///< of all threads, of the kernel too; of every round
  double bytes_per_second = 0;          ///< at the median of the seconds
  double cpu_seconds_per_gigabyte = 0;  ///< median, per 10^9 bytes
  /// The median over the rounds of (its seconds / the seconds of split): above 1, split was faster.
  double warm_split = 0;
  double cold_split = 0;
};

struct BenchIoReport {
  std::string folder;
  i64 bytes = 0;
  i64 rounds = 0;
  bool direct_io = true;  ///< false: the file system has none, and all goes through the page cache
  std::vector<IoMeasure> measures;
};

/// Makes a checkpoint in a hidden folder inside `folder`, measures plain transfers of its bytes and
/// its split over four devices (half of it by rows, half by columns, with digests and syncs), and
/// deletes everything, whatever happens. Throws kUsage for sizes and rounds below 1, kNoSpace
/// unless there is room for two copies, kInterrupted, and what lib/io throws.
BenchIoReport bench_io(const BenchIoOptions& options);

}  // namespace shardtool::api
