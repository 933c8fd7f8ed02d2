#include "kernels/device/accelerator.h"
#include "kernels/device/device.h"

namespace shardtool::kernels {

DeviceState device_state() {
  return {"", 0, "this build has no kernels for GPUs (SHARDTOOL_CUDA)", {}};
}

std::unique_ptr<Accelerator> open_accelerator(int) {
  throw no_gpu(device_state().reason);
}

}  // namespace shardtool::kernels
