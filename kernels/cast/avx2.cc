#include "kernels/cast/loops.inc"

namespace shardtool::kernels {

const CastImplementation kCastAvx2{"AVX2", f32_to_bf16, f32_to_f16, f16_to_f32, f64_to_odd_f32};

}  // namespace shardtool::kernels
