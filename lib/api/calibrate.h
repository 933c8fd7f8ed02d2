#pragma once

#include <string>

#include "lib/comm/engine_choice.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::api {

struct CalibrateOptions {
  std::string name;          ///< name of the profile
  std::string folder = ".";  ///< on the file system to measure
  i64 bytes = 256 << 20;     ///< of the files that are written and read there
  i64 rounds = 5;            ///< of every measurement, of which the median counts
  int ranks = 2;             ///< of the embedded engine; of others the processes of the launch
  comm::EngineChoice engine;
};

/// Minimum of CalibrateOptions::bytes.
inline constexpr i64 kLeastCalibrated = 4 << 20;

/// Measures the machine with all ranks of an engine working at once; a rank is a device of the
/// profile. Measures memory copies, products of bf16 weights, files in `folder` (rank 0 only), and
/// every collective by size in groups of 2, 4, ... and all ranks. Every process of a launch calls
/// it, and all get the same profile, in a form that decode_profile accepts. Deletes its files.
/// Throws kUsage for fewer than two ranks and for invalid sizes, kNoSpace, kInterrupted, and the
/// errors of run_ranks and lib/store.
plan::HardwareProfile calibrate(const CalibrateOptions& options);

}  // namespace shardtool::api
