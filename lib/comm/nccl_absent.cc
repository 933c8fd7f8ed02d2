#include "shardtool/comm/dynamic_library.h"
#include "shardtool/comm/nccl_communicator.h"

namespace shardtool::comm {

std::unique_ptr<Communicator> open_nccl(std::unique_ptr<Communicator>, const NcclLibraries&) {
  throw engine_missing("this program was built without NCCL")
      .help("build it where nccl.h and cuda_runtime_api.h are, with SHARDTOOL_NCCL");
}

}  // namespace shardtool::comm
