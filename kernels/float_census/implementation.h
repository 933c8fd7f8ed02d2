#pragma once

#include <cstddef>
#include <span>

#include "kernels/float_census/float_census.h"
#include "lib/base/dtype.h"

namespace shardtool::kernels {

/// One translation of the same loops. All give the same results.
struct CensusImplementation {
  const char* name;
  FloatCensus (*census)(Dtype dtype, std::span<const std::byte> buffer);
};

/// Those that this CPU can run, the fastest first; the portable one is the last and always there.
std::span<const CensusImplementation> census_implementations();

extern const CensusImplementation kCensusPortable;
#if defined(__x86_64__)
extern const CensusImplementation kCensusAvx2;
extern const CensusImplementation kCensusAvx512;
#endif

}  // namespace shardtool::kernels
