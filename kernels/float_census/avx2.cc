#include "kernels/float_census/formats.inc"

namespace shardtool::kernels {

const CensusImplementation kCensusAvx2{"AVX2", census_of};

}  // namespace shardtool::kernels
