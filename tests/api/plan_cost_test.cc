#include "lib/api/planning/plan_cost.h"

#include <doctest/doctest.h>

#include <fstream>

#include "lib/mapping/presets.h"
#include "tests/mapping/models.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace shardtool;
using testing::error_of;

namespace {

struct Applied {
  mapping::ModelConfig config;
  api::AppliedMapping mapping;
};

Applied applied(const mapping::TinyModel& model, const std::string& preset,
                const std::string& mesh) {
  auto config = mapping::parse_config(model.config, "config.json");
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh(mesh);
  auto loaded = mapping::load_preset(preset);
  auto resolution = resolve(loaded, model.tensors, &config, options);
  return {std::move(config), {std::move(loaded), std::move(resolution), model.tensors}};
}

}  // namespace

TEST_CASE("a forward pass has a price with and without a profile") {
  const auto model = applied(mapping::tiny_llama(), "llama", "tp=2");
  const auto report = api::forward_cost(&model.config, nullptr, model.mapping, {}, nullptr);
  CHECK(report.family == "llama");
  CHECK(report.why_not.empty());
  REQUIRE(report.price);
  CHECK_FALSE(report.price->decode.roofline);
  REQUIRE(report.price->decode.comm.size() == 2);
  CHECK(report.price->decode.comm[1].count == 5);  // two layers, and the embedding
  CHECK(report.price->decode.comm[1].collective.payload_bytes == 64 * 2);
  const auto profile = api::load_profile("h100-sxm");
  const auto timed = api::forward_cost(&model.config, nullptr, model.mapping, {}, &profile);
  CHECK(timed.profile == "h100-sxm");
  CHECK(timed.price->decode.roofline->comm_us > 0);
}

TEST_CASE("without a config, a graph or the graph's tensors there is a reason and no number") {
  auto model = applied(mapping::tiny_llama(), "llama", "tp=2");
  const auto reason = [&](const mapping::ModelConfig* config) {
    const auto report = api::forward_cost(config, nullptr, model.mapping, {}, nullptr);
    CHECK_FALSE(report.price);
    return report.why_not;
  };
  CHECK(reason(nullptr) == "there is no config.json");
  const auto unheard = mapping::parse_config(R"({"model_type": "unheard"})", "config.json");
  CHECK(reason(&unheard) == "no graph is built in for the model type 'unheard'");
  model.mapping.specs.front().name = "model.embed_tokens.qweight";
  CHECK(reason(&model.config) ==
        "the graph of llama reads a tensor that the checkpoint lacks: "
        "model.embed_tokens.weight");
}

TEST_CASE("a model whose norms have no weights has a price") {
  mapping::TinyModel olmo = mapping::tiny_llama();
  std::erase_if(olmo.tensors, [](const TensorSpec& tensor) {
    return tensor.name.find("norm") != std::string::npos;
  });
  olmo.config.replace(olmo.config.find("\"llama\""), 7, "\"olmo\"");
  const auto model = applied(olmo, "olmo", "tp=2");
  const auto report = api::forward_cost(&model.config, nullptr, model.mapping, {}, nullptr);
  CHECK(report.family == "olmo");
  CHECK(report.price);
}

TEST_CASE("a workload that cannot be is an error, not a reason") {
  const auto model = applied(mapping::tiny_llama(), "llama", "tp=2");
  CHECK_ERROR(
      kUsage,
      api::forward_cost(&model.config, nullptr, model.mapping, {.batch = 0}, nullptr).family);
}

TEST_CASE("profiles come from a name or a file") {
  test::TempFolder folder;
  const std::string path = folder / "mine.json";
  std::ofstream(path) << api::profile_text("a100-80-sxm");
  CHECK(api::load_profile(path).name == "a100-80-sxm");
  std::ofstream(path, std::ios::app) << "x";
  const auto error = error_of([&] { return api::load_profile(path).name; });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kHardwareProfile);
  CHECK(error->place()->file == "mine.json");
  CHECK_ERROR(kUnknownName, api::load_profile("h1000").name);
  CHECK(api::list_profiles().size() == 15);
}
