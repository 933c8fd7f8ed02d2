#include "tests/api/planning/published_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "lib/api/planning/planned_model.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/quantization.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/store/local/file.h"
#include "tests/golden/models.h"
#include "tests/support/checkpoint_files.h"

namespace shardtool::api {

using test::PublishedModel;

AppliedMapping applied_to(const PublishedModel& model, const mapping::ModelConfig& config,
                          const std::string& mesh) {
  const auto preset = mapping::load_preset(mapping::detect_preset(config, model.tensors).value());
  AppliedMapping applied{mapping::with_quantization(preset, &config), {}, model.tensors};
  mapping::ResolveOptions resolve;
  resolve.mesh = mesh::parse_mesh(mesh);
  applied.resolution = mapping::resolve(applied.mapping, applied.specs, &config, resolve);
  return applied;
}

MemoryReport memory(const PublishedModel& model, const std::string& mesh,
                    const PlanOptions& options, std::vector<std::string>* told) {
  const auto config = mapping::parse_config(model.config, "config.json");
  const AppliedMapping applied = applied_to(model, config, mesh);
  std::vector<std::string> notes;
  MemoryReport report = device_memory(&config, applied, options, notes);
  if (told != nullptr) {
    *told = std::move(notes);
  } else {
    CHECK(notes.empty());
  }
  return report;
}

i64 of_class(const MemoryReport& report, size_t rank, const std::string& name) {
  const auto found = std::find(report.classes.begin(), report.classes.end(), name);
  REQUIRE(found != report.classes.end());
  return report.devices[rank].by_class[static_cast<size_t>(found - report.classes.begin())];
}

i64 parameters(const PublishedModel& model) {
  return std::accumulate(
      model.tensors.begin(), model.tensors.end(), i64{0},
      [](i64 sum, const TensorSpec& spec) { return sum + element_count(spec.shape).value(); });
}

PublishedModel golden_model(const std::string& name) {
  const std::string& folder = golden::model_folder(name);
  PublishedModel model;
  model.config = store::read_text(folder + "/config.json", 1 << 20);
  for (const auto& [tensor, content] : test::read_tensors(folder, "model"))
    model.tensors.push_back(content.spec);
  return model;
}

}  // namespace shardtool::api
