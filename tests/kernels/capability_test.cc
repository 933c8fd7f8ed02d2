#include <doctest/doctest.h>

#include "kernels/device/device.h"
#include "tests/support/throws.h"

namespace shardtool::kernels {
namespace {

TEST_CASE("kernels run on the GPUs that their machine code or PTX is for") {
  struct CapabilityRow {
    const char* compiled_for;
    Capability gpu;
    bool runs;
  };
  const CapabilityRow rows[] = {
      {"80-real 90-real 100-real 120", {7, 0}, false},   // V100: older than all
      {"80-real 90-real 100-real 120", {7, 5}, false},   // T4
      {"80-real 90-real 100-real 120", {8, 0}, true},    // A100
      {"80-real 90-real 100-real 120", {8, 9}, true},    // L40: code of 8.0
      {"80-real 90-real 100-real 120", {9, 0}, true},    // H100
      {"80-real 90-real 100-real 120", {10, 3}, true},   // B300: code of 10.0
      {"80-real 90-real 100-real 120", {11, 0}, false},  // Thor: code of no 11, PTX of 12.0
      {"80-real 90-real 100-real 120", {12, 1}, true},   // code of 12.0
      {"80-real 90-real 100-real 120", {13, 0}, true},   // PTX of 12.0
      {"80-real", {9, 0}, false},                        // machine code alone
      {"80", {9, 0}, true},                              // its PTX
      {"90-virtual", {9, 0}, true},
      {"90-virtual", {8, 9}, false},
      {"89-real", {8, 6}, false},  // of a higher minor number
      {"90a-real", {9, 0}, true},
      {"90a", {10, 0}, false},  // features of 9.0 alone
      {"", {9, 0}, false},
  };
  for (const CapabilityRow& row : rows) {
    CAPTURE(row.compiled_for);
    CAPTURE(to_string(row.gpu));
    CHECK(runs_on(row.compiled_for, row.gpu) == row.runs);
  }
}

TEST_CASE("a GPU that is not there, or that no kernel runs on, is refused with its number") {
  const DeviceState state{"80-real 90-real", 2, "", {{9, 0}, {7, 5}}};
  const auto said = [&](const DeviceState& of, int index) {
    const auto error = testing::error_of([&] { return require_gpu(of, index), 0; });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kEngineMissing);
    CHECK(error->exit_status() == 6);
    return error->notes().at(0).second;
  };
  CHECK_NOTHROW(require_gpu(state, 0));
  CHECK(said(state, 1) ==
        "GPU 1 has compute capability 7.5, and the kernels are built for 80-real 90-real");
  CHECK(said(state, 2) == "there are 2, and GPU 2 is asked for");
  CHECK(said({"80", 0, "no driver", {}}, 0) == "no driver");
}

}  // namespace
}  // namespace shardtool::kernels
