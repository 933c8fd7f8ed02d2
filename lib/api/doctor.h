#pragma once

#include <string>
#include <vector>

namespace shardtool::api {

/// One thing looked at on this machine.
struct DoctorCheck {
  std::string name;
  std::string value;
  bool ok = true;
  std::string advice;  ///< what to do when not ok, or what it means
};

/// CPU and its vector units, threads, memory, page size, direct I/O and free space in `folder`, the
/// Hugging Face cache, GPUs, their driver and whether there are kernels for them, and the engines
/// that `validate` can run on, with the versions of their libraries. An engine that is missing is
/// no fault of the machine: the others do. Changes nothing but one temporary file in `folder`.
/// `mpi_plugin` is a file, or empty for where it is installed.
std::vector<DoctorCheck> doctor(const std::string& folder, const std::string& mpi_plugin = "");

}  // namespace shardtool::api
