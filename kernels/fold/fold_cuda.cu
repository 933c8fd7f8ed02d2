#include "kernels/device/launch.cuh"
#include "kernels/field/field.h"
#include "kernels/fold/fold.h"

namespace shardtool::kernels::gpu {

template void run(const FoldParts<Field>&, Stream);
template void run(const FoldParts<double>&, Stream);
template void run(const FoldParts<float>&, Stream);

}  // namespace shardtool::kernels::gpu
