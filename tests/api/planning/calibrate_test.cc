#include "lib/api/calibrate.h"

#include <doctest/doctest.h>

#include <filesystem>

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
