#include "kernels/compare/compare_cuda.h"
#include "kernels/device/launch.cuh"

namespace shardtool::kernels::gpu {
namespace {

using Counter = unsigned long long;
static_assert(sizeof(Counter) == sizeof(std::uint64_t) && sizeof(bool) == 1);

/// Distances are not negative, so atomicMax on their bits orders them correctly.
__device__ void join(Disagreement* all, const Disagreement& own) {
  if (own.worst > 0) {
    atomicMax(reinterpret_cast<Counter*>(&all->worst),
              static_cast<Counter>(__double_as_longlong(own.worst)));
  }
  if (own.has_nan) all->has_nan = true;
  if (own.mismatches == 0) return;
  atomicAdd(reinterpret_cast<Counter*>(&all->mismatches), static_cast<Counter>(own.mismatches));
  atomicMin(reinterpret_cast<Counter*>(&all->first), static_cast<Counter>(own.first));
}

template <class T>
__global__ void compare_rows(const CompareRows<T> rows, Disagreement* found) {
  Disagreement own;
  for (i64 i = thread_index(); i < rows.count(); i += thread_count()) rows.look(i, own);
  join(found, own);
}

/// Enough threads to fill any device; each compares many elements before it joins.
constexpr i64 kThreadsAtOnce = i64{1} << 19;

}  // namespace

template <class T>
void compare(const CompareRows<T>& rows, Disagreement* found, Stream stream) {
  const i64 n = rows.count();
  if (n == 0) return;
  launch("the launch of compare_rows", compare_rows<T>, blocks_of(std::min(n, kThreadsAtOnce)),
         kThreads, stream, rows, found);
}

template void run(const SquareRows<double>&, Stream);
template void run(const SquareRows<float>&, Stream);
template void run(const RootMeanSquare&, Stream);

template void compare(const CompareRows<Field>&, Disagreement*, Stream);
template void compare(const CompareRows<double>&, Disagreement*, Stream);
template void compare(const CompareRows<float>&, Disagreement*, Stream);

}  // namespace shardtool::kernels::gpu
