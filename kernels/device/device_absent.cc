#include "shardtool/kernels/device/device.h"

namespace shardtool::kernels {

DeviceState device_state() {
  return {"", 0, "this build has no kernels for GPUs (SHARDTOOL_CUDA)"};
}

}  // namespace shardtool::kernels
