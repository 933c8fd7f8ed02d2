#include <cstdint>

#include "kernels/device/launch.cuh"
#include "kernels/fill/fill.h"

namespace shardtool::kernels::gpu {

template void run(const Fill<std::uint8_t>&, Stream);
template void run(const Fill<std::uint16_t>&, Stream);
template void run(const Fill<std::uint32_t>&, Stream);
template void run(const Fill<std::uint64_t>&, Stream);

}  // namespace shardtool::kernels::gpu
