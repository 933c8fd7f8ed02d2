#include "kernels/device/launch.cuh"
#include "kernels/encode/element.h"

namespace shardtool::kernels::gpu {

template void run(const EncodeFloats&, Stream);

}  // namespace shardtool::kernels::gpu
