#pragma once

#include <string>

namespace shardtool::comm {

/// Which libraries to open; empty: those that the loader finds under their usual names.
struct NcclLibraries {
  std::string nccl;
  std::string cuda_runtime;
};

}  // namespace shardtool::comm
