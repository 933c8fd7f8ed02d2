#include "kernels/float_census/formats.inc"

namespace shardtool::kernels {

const CensusImplementation kCensusAvx512{"AVX-512", census_of};

}  // namespace shardtool::kernels
