#include <vector>

#include "kernels/float_census/float_census.h"
#include "kernels/float_census/implementation.h"

namespace shardtool::kernels {
namespace {

std::vector<CensusImplementation> supported_censuses() {
  std::vector<CensusImplementation> list;
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (wide) list.push_back(kCensusAvx512);
  if (__builtin_cpu_supports("avx2")) list.push_back(kCensusAvx2);
#endif
  list.push_back(kCensusPortable);
  return list;
}

}  // namespace

std::span<const CensusImplementation> census_implementations() {
  static const std::vector<CensusImplementation> list = supported_censuses();
  return list;
}

FloatCensus float_census(Dtype dtype, std::span<const std::byte> buffer) {
  return census_implementations().front().census(dtype, buffer);
}

}  // namespace shardtool::kernels
