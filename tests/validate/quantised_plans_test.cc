// Plans of checkpoints with quantised weights.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>

#include "lib/api/catalogue/profiles.h"
#include "lib/api/inspect.h"
#include "lib/api/plan.h"
#include "lib/api/planning/search/training_search.h"
#include "lib/api/transform.h"
#include "lib/base/error.h"
#include "tests/support/throws.h"
#include "tests/validate/quantised_model.h"

namespace shardtool::api {
namespace {

/// A checkpoint of a form, for as long as the object lives.
class Stored {
 public:
  explicit Stored(const std::string& form, i64 tp = 1) {
    test::Random random(7);
    const test::QuantisedModel model = test::quantised_model(form, tp, random);
    test::write_checkpoint(folder_.path(), model.tensors);
    folder_.write("config.json", model.config);
  }

  /// Path of an output beside the checkpoint.
  std::string output() const { return beside_ / "out"; }
  PlanOptions plan() const {
    PlanOptions options;
    options.sources = {folder_.path()};
    options.mapping.mesh = mesh::parse_mesh("tp=1");
    return options;
  }

 private:
  test::TempFolder folder_;
  test::TempFolder beside_;
};

/// True for forms that have several weights in a stored number.
bool is_packed(const std::string& form) {
  constexpr auto kPacked =
      std::to_array<const char*>({"gptq", "awq", "pack-quantized", "nvfp4", "mxfp4"});
  return std::ranges::any_of(kPacked, [&](const char* name) { return form.starts_with(name); });
}

TEST_CASE("packed weights are not trained, weights of one number each are") {
  for (const std::string& form : test::quantised_forms()) {
    CAPTURE(form);
    const Stored model(form);
    PlanOptions plan = model.plan();
    plan.training = TrainingPlan{};
    TrainSearchOptions search;
    search.plan = model.plan();
    search.plan.hardware = load_profile("h100-sxm");
    search.plan.device.bytes = search.plan.hardware->usable_bytes;
    search.devices = {1};
    search.sequence = search.batch = 8;
    if (is_packed(form)) {
      CHECK_ERROR(kUnsupported, make_plan(plan).memory.fullest);
      CHECK_ERROR(kUnsupported, search_training(search).rows.size());
    } else {
      CHECK(make_plan(plan).memory.devices[0].training > 0);
    }
  }
}

TEST_CASE("inspect counts the elements of packed weights") {
  for (const std::string& form : test::quantised_forms()) {
    if (!is_packed(form)) continue;
    CAPTURE(form);
    const Stored model(form);
    InspectOptions options;
    options.source = model.plan().sources.front();
    SplitOptions unpacked;
    unpacked.source = options.source;
    unpacked.mapping = model.plan().mapping;
    unpacked.write.output = model.output();
    unpacked.write.dequantize = true;
    split(unpacked);
    const i64 packed = inspect(options).parameters;
    options.source = model.output();
    CHECK(packed == inspect(options).parameters);
  }
}

TEST_CASE("fewer bits are not advised for weights that are quantised") {
  for (const std::string& form : test::quantised_forms()) {
    CAPTURE(form);
    const Stored model(form);
    PlanOptions options = model.plan();
    options.device.bytes = make_plan(options).memory.devices[0].total - 1;
    for (const FitAdvice& advice : make_plan(options).memory.advice)
      CHECK(advice.what != "weight bits");
  }
}

TEST_CASE("a plan refuses what no file of the layout can hold, as split does") {
  int unsupported = 0;
  for (const std::string& form : test::quantised_forms()) {
    CAPTURE(form);
    const Stored model(form, 2);
    PlanOptions options = model.plan();
    options.mapping.mesh = mesh::parse_mesh("tp=2");
    SplitOptions written;
    written.source = options.sources.front();
    written.mapping = options.mapping;
    written.write.layout = options.mapping.engine_layout = "dcp";
    written.write.output = model.output();
    written.write.dry_run = true;
    const auto refused = testing::error_of([&] { split(written); });
    const auto planned = testing::error_of([&] { make_plan(options); });
    REQUIRE(planned.has_value() == refused.has_value());
    if (refused) CHECK(planned->code() == refused->code());
    if (refused && refused->code() == ErrorCode::kUnsupported) ++unsupported;
  }
  CHECK(unsupported > 0);
}

}  // namespace
}  // namespace shardtool::api
