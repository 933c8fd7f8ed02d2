#pragma once

#include <atomic>
#include <string>

#include "lib/comm/engine_choice.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::api {

struct CalibrateOptions {
  std::string name;          ///< of the profile
  std::string folder = ".";  ///< on the file system to measure
  i64 bytes = 256 << 20;     ///< of the files that are written and read there
  i64 rounds = 5;            ///< of every measurement, of which the median counts
  int ranks = 2;             ///< of the embedded engine; of others the processes of the launch
  comm::EngineChoice engine;
  const std::atomic<bool>* cancel = nullptr;
};

/// The least of CalibrateOptions::bytes.
inline constexpr i64 kLeastCalibrated = 4 << 20;

/// Measures the machine as the ranks of an engine find it when all of them work at once, a rank
/// being a device of the profile: copies in memory, products of bf16 weights, the files of `folder`
/// (by rank 0), and every collective in groups of 2, 4, ... and all ranks, by size. Every process
/// of a launch calls it, and all get the same profile, which decode_profile takes. What it writes
/// is deleted. Throws kUsage for fewer than two ranks and sizes that cannot be, kNoSpace,
/// kInterrupted, and what run_ranks and lib/io throw.
plan::HardwareProfile calibrate(const CalibrateOptions& options);

}  // namespace shardtool::api
