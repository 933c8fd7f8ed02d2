#include "kernels/device/launch.cuh"
#include "kernels/ops/works.h"

namespace shardtool::kernels::gpu {

template void run(const NormRows<Field>&, Stream);
template void run(const NormRows<double>&, Stream);
template void run(const NormRows<float>&, Stream);

template void run(const RotateHeads<Field>&, Stream);
template void run(const RotateHeads<double>&, Stream);
template void run(const RotateHeads<float>&, Stream);

template void run(const AttendHeads<Field>&, Stream);
template void run(const AttendHeads<double>&, Stream);
template void run(const AttendHeads<float>&, Stream);

template void run(const IndexRows<Field>&, Stream);
template void run(const IndexRows<double>&, Stream);
template void run(const IndexRows<float>&, Stream);

template void run(const ConvolveRows<Field>&, Stream);
template void run(const ConvolveRows<double>&, Stream);
template void run(const ConvolveRows<float>&, Stream);

template void run(const RecurHeads<Field>&, Stream);
template void run(const RecurHeads<double>&, Stream);
template void run(const RecurHeads<float>&, Stream);

template void run(const ActivateAll<Field>&, Stream);
template void run(const ActivateAll<double>&, Stream);
template void run(const ActivateAll<float>&, Stream);

template void run(const CombineAll<Field>&, Stream);
template void run(const CombineAll<double>&, Stream);
template void run(const CombineAll<float>&, Stream);

template void run(const AddToRows<Field>&, Stream);
template void run(const AddToRows<double>&, Stream);
template void run(const AddToRows<float>&, Stream);

template void run(const ScaleRows<Field>&, Stream);
template void run(const ScaleRows<double>&, Stream);
template void run(const ScaleRows<float>&, Stream);

template void run(const WeighRows<Field>&, Stream);
template void run(const WeighRows<double>&, Stream);
template void run(const WeighRows<float>&, Stream);

template void run(const RouteToAll&, Stream);
template void run(const RouteRows<double>&, Stream);
template void run(const RouteRows<float>&, Stream);

}  // namespace shardtool::kernels::gpu
