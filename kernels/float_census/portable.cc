#include "kernels/float_census/formats.inc"

namespace shardtool::kernels {

const CensusImplementation kCensusPortable{"portable", census_of};

}  // namespace shardtool::kernels
