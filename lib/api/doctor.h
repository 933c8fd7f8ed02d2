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
/// Hugging Face cache, GPUs and whether there are kernels for them. Changes nothing but one temporary file in `folder`.
std::vector<DoctorCheck> doctor(const std::string& folder);

}  // namespace shardtool::api
