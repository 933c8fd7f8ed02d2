#include <doctest/doctest.h>

#include "lib/api/doctor.h"

namespace shardtool::api {
namespace {

TEST_CASE("doctor names the GPUs that no kernel was built for") {
  const DoctorCheck good = gpu_check({"80-real 90-real", 2, "", {{9, 0}, {8, 6}}});
  CHECK(good.ok);
  CHECK(good.value == "compute capability 9.0, compute capability 8.6");
  CHECK(good.advice == "kernels are built for 80-real 90-real");
  const DoctorCheck mixed = gpu_check({"80-real 90-real", 3, "", {{7, 5}, {9, 0}, {12, 0}}});
  CHECK_FALSE(mixed.ok);
  CHECK(mixed.advice ==
        "kernels are built for 80-real 90-real, not for GPU 0, 2: build with "
        "-DSHARDTOOL_CUDA_ARCH for it");
}

TEST_CASE("no GPU, or no kernels, is no fault of a machine") {
  const DoctorCheck none = gpu_check({"90", 0, "no driver", {}});
  CHECK(none.ok);
  CHECK(none.value == "none: no driver");
  CHECK(none.advice == "kernels are built for 90");
  const DoctorCheck no_kernels = gpu_check({"", 0, "no kernels", {}});
  CHECK(no_kernels.ok);
  CHECK(no_kernels.advice.starts_with("build it where nvcc is, with -DSHARDTOOL_CUDA=ON; "));
}

}  // namespace
}  // namespace shardtool::api
