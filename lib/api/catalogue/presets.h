#pragma once

#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/mapping/init.h"

namespace shardtool::api {

struct PresetInfo {
  std::string name;
  std::string description;
  std::vector<std::string> architectures;
  std::vector<std::string> model_types;
};

/// A document for the tensors of quantised models; config.json selects it in addition to the
/// preset.
struct FamilyInfo {
  std::string name;
  std::string description;
  std::vector<std::string> quantization;  ///< values in config.json: "gptq/desc_act"
};

/// Names of the built-in documents.
struct PresetList {
  std::vector<PresetInfo> presets;
  std::vector<FamilyInfo> families;
};
PresetList list_presets();
/// Returns the names of the presets, sorted.
std::vector<std::string> preset_names();
/// Returns the JSON text of a preset or family. Throws kUsage with suggestions.
std::string preset_text(const std::string& name);
/// Returns the JSON Schema (draft-07) of mapping files.
std::string mapping_schema();

struct InitOptions {
  std::string source;              ///< a checkpoint
  std::string preset;              ///< empty: the fitting one, if any
  std::optional<mesh::Mesh> mesh;  ///< default tp=2
};
struct InitReport {
  std::string mapping;                  ///< text of a mapping file
  std::string preset;                   ///< the preset that it extends; empty if no preset fits
  std::vector<std::string> replicated;  ///< globs of tensors whose use is not known
  std::vector<mapping::ProposalNote> proposed;  ///< without a preset: every rule of the mapping
};
/// Returns a mapping that extends the preset and spells out mesh and axes. For a model without a
/// preset, proposes axes and a rule per kind of tensor.
InitReport init_mapping(const InitOptions& options);

}  // namespace shardtool::api
