#include "lib/base/dynamic_library.h"
#include "lib/comm/nccl/nccl_communicator.h"

namespace shardtool::comm {

namespace {

Error not_built() {
  return engine_missing("this program was built without NCCL")
      .help("build it where nccl.h and cuda_runtime_api.h are, with SHARDTOOL_NCCL");
}

}  // namespace

std::string found_nccl(const NcclLibraries&) {
  throw not_built();
}

std::unique_ptr<Communicator> open_nccl(std::unique_ptr<Communicator>, const NcclLibraries&) {
  throw not_built();
}

}  // namespace shardtool::comm
