#include "lib/api/catalogue/presets.h"

#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/mapping/init.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/presets.h"

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

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const mapping::Preset& preset : mapping::presets()) names.push_back(preset.name);
  return names;
}

std::string preset_text(const std::string& name) {
  return std::string(mapping::preset_text(name));
}

std::string mapping_schema() {
  return mapping::schema_json();
}

InitReport init_mapping(const InitOptions& options) {
  const LogicalCheckpoint source = open_logical({options.source});
  const auto config = source.config();
  const auto specs = source.specs();
  InitReport report;
  report.preset = options.preset;
  if (report.preset.empty()) report.preset = fitting_preset(config, specs).value_or("");
  const mesh::Mesh mesh = options.mesh.value_or(mesh::Mesh({{"tp", 2}}));
  mapping::InitialMapping initial =
      mapping::init_mapping(config ? &*config : nullptr, report.preset, mesh, specs);
  report.mapping = std::move(initial.text);
  report.replicated = std::move(initial.replicated);
  report.proposed = std::move(initial.proposed);
  return report;
}

}  // namespace shardtool::api
