#include "lib/api/calibrate.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "lib/api/transfer/scratch_folder.h"
#include "lib/plan/collective/collective_time.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace shardtool;

TEST_CASE("a machine's profile is one that is accepted, with tables of what was measured") {
  test::TempFolder folder;
  api::CalibrateOptions options;
  options.name = "here";
  options.folder = folder / "";
  options.bytes = api::kLeastCalibrated;
  options.rounds = 1;
  options.ranks = 3;
  const auto profile = plan::decode_profile(plan::to_json(api::calibrate(options)), "here.json");
  CHECK(profile.name == "here");
  CHECK(profile.domain() == 3);
  CHECK(profile.memory_gb_per_s > 0);
  CHECK(profile.rates.bf16_tflops > 0);
  REQUIRE(profile.measured);
  CHECK(profile.measured->date.size() == 10);
  CHECK(profile.storage->read_us_of_bytes.size() == 4);
  CHECK(profile.timings.size() == 12);  // six operations in groups of 2 and of 3
  // The measured cost of such a call is used, not the model of the fabric.
  const auto time = plan::time_of({plan::CollectiveOp::kAllReduce, {3, 1}, 1 << 10}, profile);
  CHECK(time.algorithm == plan::Algorithm::kMeasured);
  CHECK(time.us > 0);
  CHECK(std::filesystem::is_empty(folder / ""));
}

TEST_CASE("one rank, and files too small to measure, are refused") {
  api::CalibrateOptions options;
  options.ranks = 1;
  CHECK_ERROR(kUsage, api::calibrate(options).name);
  options.ranks = 2;
  options.bytes = api::kLeastCalibrated - 1;
  CHECK_ERROR(kUsage, api::calibrate(options).name);
  options.bytes = i64{1} << 50;
  CHECK_ERROR(kNoSpace, api::calibrate(options).name);
}

TEST_CASE("a hidden folder of a measurement does not take a name that others foresee") {
  const test::TempFolder folder;
  for (int number = 0; number < 100; ++number) {
    folder.write(".shardtool-bench-" + std::to_string(getpid()) + "-" + std::to_string(number), "");
  }
  std::string path;
  {
    const api::ScratchFolder scratch(folder.path(), "bench");
    const api::ScratchFolder other(folder.path(), "bench");
    path = scratch / "";
    CHECK(path != other / "");
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0700U);
  }
  CHECK_FALSE(std::filesystem::exists(path));
}
