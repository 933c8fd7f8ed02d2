#include <string>

#include "kernels/device/launch.cuh"
#include "kernels/strided_copy/strided_copy_cuda.h"
#include "kernels/strided_copy/unit_copy.h"
#include "lib/base/error.h"

namespace shardtool::kernels::gpu {
namespace {

template <size_t kUnit>
void copy_units(const index::StridedCopy& copy, const std::byte* src, std::byte* dst,
                Stream stream) {
  const auto units = unit_copy<kUnit>(copy, src, dst);
  if (!units) {
    throw Error(ErrorCode::kLimit, "a copy of more loops than a GPU's kernel takes")
        .note("found", std::to_string(copy.loops.size()))
        .note("at most", std::to_string(kMostCopyLoops));
  }
  run(*units, stream);
}

}  // namespace

void strided_copy(const index::StridedCopy& copy, const std::byte* src, std::byte* dst,
                  Stream stream) {
  switch (copy.run == 0 ? 1 : unit_of(copy, src, dst)) {
    case 16:
      return copy_units<16>(copy, src, dst, stream);
    case 8:
      return copy_units<8>(copy, src, dst, stream);
    case 4:
      return copy_units<4>(copy, src, dst, stream);
    case 2:
      return copy_units<2>(copy, src, dst, stream);
    default:
      return copy_units<1>(copy, src, dst, stream);
  }
}

}  // namespace shardtool::kernels::gpu
