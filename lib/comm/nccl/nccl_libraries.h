#pragma once

#include <string>

namespace shardtool::comm {

/// Libraries to open. Empty: those that the loader finds under their usual names.
struct NcclLibraries {
  std::string nccl;
  std::string cuda_runtime;
};

}  // namespace shardtool::comm
