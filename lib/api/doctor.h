#pragma once

#include <string>
#include <vector>

#include "kernels/device/device.h"

namespace shardtool::api {

/// One check of this machine.
struct DoctorCheck {
  std::string name;
  std::string value;
  bool ok = true;
  std::string advice;  ///< advice if not ok, or an explanation
};

/// Judges the GPUs: not ok if no kernel was built for one of them. No GPU counts as ok.
DoctorCheck gpu_check(const kernels::DeviceState& state);

/// Checks the CPU and its vector units, threads, memory, page size, direct I/O and free space in
/// `folder`, the Hugging Face cache, GPUs, their driver and kernels, and the engines of `validate`
/// with their library versions. A missing engine counts as ok, since others work. Writes nothing
/// but one temporary file in `folder`. If `folder` is s3://bucket/prefix, it asks the store instead
/// (store_doctor.h). `mpi_plugin` is a file; empty means the installed one.
std::vector<DoctorCheck> doctor(const std::string& folder, const std::string& mpi_plugin = "");

}  // namespace shardtool::api
