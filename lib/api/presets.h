#pragma once

#include <string>
#include <vector>

#include "lib/api/transform.h"

namespace shardtool::api {

struct PresetInfo {
  std::string name;
  std::string description;
  std::vector<std::string> architectures;
  std::vector<std::string> model_types;
};

/// Tensors of quantised models, which a model's preset is followed by where config.json says so.
struct FamilyInfo {
  std::string name;
  std::string description;
  std::vector<std::string> quantization;  ///< what config.json says: "gptq/desc_act"
};

/// The documents that are built in, by name.
struct PresetList {
  std::vector<PresetInfo> presets;
  std::vector<FamilyInfo> families;
};
PresetList list_presets();
/// A preset's or a family's JSON text. Throws kUnknownName with near misses.
std::string preset_text(const std::string& name);
/// The JSON Schema (draft-07) of mapping files.
std::string mapping_schema();

struct InitOptions {
  std::string source;              ///< a checkpoint
  std::string preset;              ///< or empty: the one that fits, if one does
  std::optional<mesh::Mesh> mesh;  ///< default tp=2
};
struct InitReport {
  std::string mapping;                  ///< a mapping file's text
  std::string preset;                   ///< that it extends; empty: none knows this model
  std::vector<std::string> replicated;  ///< globs of the tensors that no preset knows
};
/// A mapping that extends the preset and spells out mesh and axes; a model that no preset knows
/// gets a rule for every kind of tensors, which replicates them.
InitReport init_mapping(const InitOptions& options);

}  // namespace shardtool::api
