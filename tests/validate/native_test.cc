// The native run rounds values as engines with the weights' dtype do.
#include <doctest/doctest.h>

#include <algorithm>

#include "lib/api/transform.h"
#include "tests/validate/made_model.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

api::ValidateReport native_run(const std::string& parts, const std::string& model) {
  api::ValidateOptions options;
  options.sources = {parts};
  options.reference = model;
  options.native = true;
  options.resources.threads = 1;
  return api::validate(options);
}

const api::ValidateTier& native_of(const api::ValidateReport& report) {
  const auto row =
      std::ranges::find(report.tiers, engine::TierKind::kNative, &api::ValidateTier::kind);
  REQUIRE(row != report.tiers.end());
  return *row;
}

TEST_CASE("the native run rounds to the weights' own type") {
  struct Case {
    std::string model;
    std::string type;
    double least, most;  ///< of the whole model's error
  };
  const Case kCases[] = {{"prototype", "BF16", 1e-3, 1e-1},
                         {"half prototype", "F16", 1e-4, 1e-2},
                         {"wide prototype", "F32", 1e-9, 1e-5}};
  double before = 1;
  for (const auto& [model, type, least, most] : kCases) {
    CAPTURE(model);
    const TempFolder folder;
    const auto report = native_run(split_copy(model, "tp=2", folder), model_folder(model));
    CHECK(report.native_type == type);
    const api::ValidateTier& tier = native_of(report);
    CHECK(tier.rounding > least);
    CHECK(tier.rounding < most);
    CHECK(tier.rounding < before / 3);
    before = tier.rounding;
    constexpr double kAbout = 2;
    CHECK(tier.worst < kAbout);
  }
}

}  // namespace
}  // namespace shardtool::test
