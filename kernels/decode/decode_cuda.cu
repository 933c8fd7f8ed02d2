#include "kernels/decode/decode_works.h"
#include "kernels/device/launch.cuh"

namespace shardtool::kernels::gpu {

template void run(const DecodeNumbers<float>&, Stream);
template void run(const DecodeNumbers<double>&, Stream);
template void run(const DecodeResidues&, Stream);

}  // namespace shardtool::kernels::gpu
