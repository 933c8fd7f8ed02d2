#pragma once

#include <cstddef>
#include <span>

#include "kernels/float_census/float_census.h"
#include "lib/base/dtype.h"

namespace shardtool::kernels {

/// One compilation of the same loops for an instruction set. All give the same results.
struct CensusImplementation {
  const char* name;
  FloatCensus (*census)(Dtype dtype, std::span<const std::byte> buffer);
};

/// Implementations that this CPU can run, fastest first. The portable one is always last.
std::span<const CensusImplementation> census_implementations();

extern const CensusImplementation kCensusPortable;
#if defined(__x86_64__)
extern const CensusImplementation kCensusAvx2;
extern const CensusImplementation kCensusAvx512;
#endif

}  // namespace shardtool::kernels
