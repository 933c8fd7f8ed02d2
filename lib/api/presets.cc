#include "shardtool/api/presets.h"

#include "shardtool/api/logical_checkpoint.h"
#include "shardtool/base/error.h"
#include "shardtool/mapping/init.h"
#include "shardtool/mapping/mapping.h"
#include "shardtool/mapping/presets.h"

namespace shardtool::api {

PresetList list_presets() {
  PresetList list;
  for (const mapping::Preset& preset : mapping::presets()) {
    list.presets.push_back(
        {preset.name, preset.description, preset.architectures, preset.model_types});
  }
  for (const mapping::Preset& family : mapping::quantized_families())
    list.families.push_back({family.name, family.description, family.quantization});
  return list;
}

std::string preset_text(const std::string& name) {
  return mapping::find_preset(name).text;
}

std::string mapping_schema() {
  return mapping::schema_json();
}

std::string init_mapping(const InitOptions& options) {
  const LogicalCheckpoint source = open_logical({options.source});
  const auto config = source.config();
  if (!config) {
    throw Error(ErrorCode::kConfig, "there is no config.json beside the weights to start from")
        .note("checkpoint", source.parts.front().path)
        .help(
            "copy the model's config.json there, or start from a preset's text: shardtool presets "
            "show NAME");
  }
  const auto specs = source.specs();
  std::string preset = options.preset;
  if (preset.empty()) preset = mapping::detect_preset(*config, specs).value_or("");
  if (preset.empty()) {
    throw Error(ErrorCode::kConfig, "no preset knows this model")
        .note("config.json", "model_type '" + config->model_type() + "'")
        .help("choose the nearest one with --preset; `shardtool presets` lists them");
  }
  const mesh::Mesh mesh = options.mesh.value_or(mesh::Mesh({{"tp", 2}}));
  return mapping::init_mapping(*config, preset, mesh, specs);
}

}  // namespace shardtool::api
