#include "lib/api/mapping/mapping_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/api/mapping/full_places.h"
#include "lib/api/mapping/recorded_mapping.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/quantization.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

const std::string kAdapterConfig = "adapter_config.json";

Error no_preset(const LogicalCheckpoint& source,
                const std::optional<mapping::ModelConfig>& config) {
  Error error(ErrorCode::kConfig, "no mapping is given, and no preset knows this model");
  error.note("checkpoint", source.parts.front().path);
  if (config) {
    error.note("config.json",
               fmt::format("architectures [{}], model_type '{}'",
                           fmt::join(config->architectures(), ", "), config->model_type()));
  } else {
    error.note("config.json", "not beside the weights");
    if (is_adapter(source.parts.front(), source.specs()))
      error.help("give the config.json of the model that the adapter changes, with --model-config");
  }
  error.help("choose the nearest one with --preset; `shardtool presets` lists them");
  error.help("or write a mapping file and give it with --mapping (`shardtool init` starts one)");
  return error;
}

mapping::Mapping detected(const LogicalCheckpoint& source,
                          const std::optional<mapping::ModelConfig>& config) {
  const auto name = fitting_preset(config, source.specs());
  if (!name) throw no_preset(source, config);
  return mapping::load_preset(*name);
}

/// Loads the mapping file, the preset, the documents of the source's manifest, or the fitting
/// preset.
mapping::Mapping named_mapping(const MappingChoice& choice, const LogicalCheckpoint& source,
                               const std::optional<mapping::ModelConfig>& config) {
  if (!choice.path.empty() && !choice.preset.empty()) {
    throw Error(ErrorCode::kUsage, "a mapping file and a preset are both given")
        .help("a mapping file starts from a preset with \"extends\": [\"preset:NAME\"]");
  }
  if (!choice.path.empty()) return mapping::load_mapping(choice.path);
  if (!choice.preset.empty()) return mapping::load_preset(choice.preset);
  if (!is_recorded(choice, source)) return detected(source, config);
  const format::Checkpoint& first = source.parts.front();
  return mapping_from_json(first.manifest->mapping, first.path + "/" + format::kManifestName);
}

/// Adds the documents that describe the storage of the weights: adapter matrices or a quantisation.
mapping::Mapping with_storage(const mapping::Mapping& mapping, const LogicalCheckpoint& source,
                              const mapping::ModelConfig* model) {
  const format::Checkpoint& first = source.parts.front();
  const auto& files = first.other_files;
  const bool is_listed = std::find(files.begin(), files.end(), kAdapterConfig) != files.end();
  const bool is_single = files.empty();  // a file alone, or nothing beside the weights
  if (!is_listed && !(is_single && is_adapter(first, source.specs())))
    return mapping::with_quantization(mapping, model);
  const auto adapter = mapping::load_config(first.other_path(kAdapterConfig));
  return mapping::with_family(mapping, mapping::adapter_tag(adapter), "adapter_config.json");
}

}  // namespace

bool is_adapter(const format::Checkpoint& opened, std::span<const TensorSpec> tensors) {
  constexpr std::string_view kPrefix = "base_model.model.";
  const auto is_its = [](const TensorSpec& tensor) { return tensor.name.starts_with(kPrefix); };
  if (tensors.empty() || !std::ranges::all_of(tensors, is_its)) return false;
  return store::is_file(opened.other_path(kAdapterConfig));
}

void keep_experts_whole(MappingChoice& choice, bool over_ep) {
  choice.settings.push_back({"axes.experts.mesh", over_ep ? R"(["ep", "tp"])" : "tp"});
  choice.settings.push_back({"axes.experts.alone", "true"});
}

bool is_mapping_error(const Error& error) {
  constexpr int kMappingStatus = 3;
  return error.exit_status() == kMappingStatus;
}

bool is_input_error(const Error& error) {
  constexpr int kInputStatus = 4;
  return error.exit_status() == kInputStatus;
}

std::optional<mapping::ModelConfig> model_config(const MappingChoice& choice,
                                                 const LogicalCheckpoint& source) {
  if (choice.config.empty()) return source.config();
  return source.load_config(choice.config);
}

bool says_cut(const MappingChoice& choice) {
  return choice.mesh || choice.require_even || choice.allow_empty_shards ||
         !choice.settings.empty() || !choice.path.empty() || !choice.preset.empty() ||
         !choice.layout.empty() || !choice.axis_mapping.empty() || !choice.engine_layout.empty();
}

std::optional<std::string> fitting_preset(const std::optional<mapping::ModelConfig>& config,
                                          std::span<const TensorSpec> tensors) {
  static const mapping::ModelConfig kNoConfig = mapping::parse_config("{}", "config.json");
  return mapping::detect_preset(config ? *config : kNoConfig, tensors);
}

mapping::Mapping choose_mapping(const MappingChoice& choice, const LogicalCheckpoint& source) {
  const auto config = model_config(choice, source);
  return with_full_places(choice, [&] {
    return with_storage(named_mapping(choice, source, config), source, config ? &*config : nullptr);
  });
}

namespace {

Error unknown_layout(const std::string& name, const mapping::Mapping& mapping) {
  std::vector<std::string> known;
  for (const mapping::Document& document : mapping.documents()) {
    for (const auto& [layout, axes] : document.layouts) known.push_back(layout);
  }
  Error error(ErrorCode::kUnknownName,
              fmt::format("'{}' is none of the mapping's layouts", quote_for_message(name)));
  error.note("layouts", known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
  if (const auto hint = did_you_mean(name, known); !hint.empty()) error.help(hint);
  error.help("a mapping file is written with its ending, .json, or with a slash");
  return error;
}

}  // namespace

bool names_file(const std::string& layout) {
  return layout.find('/') != layout.npos || layout.ends_with(".json");
}

MappingChoice reading_choice(const MappingChoice& base, const std::string& layout) {
  MappingChoice choice = base;
  if (choice.path.empty() && names_file(layout)) choice.path = layout;
  return choice;
}

MappingChoice at_layout(const MappingChoice& base, const std::string& layout,
                        const LogicalCheckpoint& source) {
  MappingChoice choice = base;
  if (names_file(layout)) {
    choice.path = layout;
    choice.preset.clear();
    return choice;
  }
  const mapping::Mapping mapping = choose_mapping(base, source);
  const bool is_known = std::ranges::any_of(
      mapping.documents(),
      [&](const mapping::Document& document) { return document.layouts.contains(layout); });
  if (!is_known) throw unknown_layout(layout, mapping);
  choice.layout = layout;
  return choice;
}

mapping::Mapping with_typed_documents(mapping::Mapping mapping, const MappingChoice& choice) {
  if (!choice.axis_mapping.empty())
    mapping = mapping::with_axis_mapping(mapping, choice.axis_mapping);
  return mapping::with_settings(mapping, choice.settings);
}

mapping::ResolveOptions resolve_options(const MappingChoice& choice) {
  mapping::ResolveOptions options;
  options.mesh = choice.mesh;
  options.layout = choice.layout;
  options.require_even = choice.require_even;
  options.allow_empty_shards = choice.allow_empty_shards;
  return options;
}

MappingChoice over_own_mesh(const LogicalCheckpoint& source, const MappingChoice& typed) {
  MappingChoice choice = typed;
  const bool is_own = typed.path.empty() && typed.preset.empty();
  if (source.is_sharded() && is_own && !choice.mesh) {
    choice.mesh = source.parts.front().manifest->mesh;
  }
  return choice;
}

}  // namespace shardtool::api
