#include "lib/api/mapping_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <variant>

#include "lib/base/error.h"
#include "lib/base/strict_json.h"
#include "lib/base/text.h"
#include "lib/mapping/mesh_choice.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/quantization.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

constexpr int kMaxMappingDepth = 64;
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

/// True if the mapping is the one in the source's manifest.
bool is_own(const MappingChoice& choice, const LogicalCheckpoint& source) {
  const auto& manifest = source.parts.front().manifest;
  return choice.path.empty() && choice.preset.empty() && manifest && !manifest->mapping.empty();
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
  if (!is_own(choice, source)) return detected(source, config);
  const format::Checkpoint& first = source.parts.front();
  return mapping_from_json(first.manifest->mapping, first.path + "/" + format::kManifestName);
}

/// Adds the options that the manifest records beside its mapping.
MappingChoice with_own_options(const MappingChoice& typed, const LogicalCheckpoint& source) {
  MappingChoice choice = typed;
  if (!is_own(typed, source)) return choice;
  const format::Manifest& manifest = *source.parts.front().manifest;
  if (choice.layout.empty() && choice.axis_mapping.empty()) choice.layout = manifest.axes;
  choice.allow_empty_shards = choice.allow_empty_shards || manifest.allows_empty_shards;
  return choice;
}

/// Interval of the global axis, in order.
std::vector<index::Piece> image_of(const index::AxisMap& map) {
  const index::AxisMap sorted = inverse(map);  // pieces by global index
  std::vector<index::Piece> image;
  for (const index::Piece& piece : sorted.pieces()) {
    if (!image.empty() && image.back().local_end() == piece.local) {
      image.back().size += piece.size;
    } else {
      image.push_back({piece.local, 0, piece.size});
    }
  }
  return image;
}

/// True if both regions have the same elements, in any order: "store" may interleave rows.
bool have_same_elements(const index::Region& a, const index::Region& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const index::AxisMap& x, const index::AxisMap& y) {
        return x == y || (x.local_size() == y.local_size() && image_of(x) == image_of(y));
      });
}

/// Throws kManifestInvalid if the resolution of the manifest's mapping over its own mesh differs
/// from its slices.
void require_own_slices(const LogicalCheckpoint& source, const mapping::Resolution& resolution) {
  const auto displaced = first_displaced(source, resolution);
  if (!displaced) return;
  throw Error(ErrorCode::kManifestInvalid,
              fmt::format("the manifest's mapping gives rank {} another shard than the files have",
                          displaced->rank))
      .at({source.parts.front().path + "/" + format::kManifestName, 0, 0, "/mapping"})
      .tensor(displaced->tensor)
      .note("mapping", displaced->given ? to_string(*displaced->given) : "nothing")
      .note("slices", to_string(displaced->stored))
      .help("give the --axes of the split, or its mapping: older manifests do not record --axes");
}

/// True if the manifest may be one of a version that did not record --axes.
bool may_lack_axes(const format::Manifest& manifest, const mapping::Mapping& mapping) {
  return manifest.axes.empty() &&
         std::ranges::any_of(mapping.documents(),
                             [](const auto& document) { return !document.layouts.empty(); });
}

/// Adds the documents that describe the storage of the weights: adapter matrices or a quantisation.
mapping::Mapping with_storage(const mapping::Mapping& mapping, const LogicalCheckpoint& source,
                              const mapping::ModelConfig* model) {
  const format::Checkpoint& first = source.parts.front();
  const auto& files = first.side_files;
  if (std::find(files.begin(), files.end(), kAdapterConfig) == files.end())
    return mapping::with_quantization(mapping, model);
  const auto adapter = mapping::load_config(first.side_path(kAdapterConfig));
  return mapping::with_family(mapping, mapping::adapter_tag(adapter), "adapter_config.json");
}

}  // namespace

void keep_experts_whole(MappingChoice& choice, bool over_ep) {
  choice.settings.push_back({"axes.experts.mesh", over_ep ? R"(["ep", "tp"])" : "tp"});
  choice.settings.push_back({"axes.experts.alone", "true"});
}

std::optional<mapping::ModelConfig> model_config(const MappingChoice& choice,
                                                 const LogicalCheckpoint& source) {
  if (choice.config.empty()) return source.config();
  return source.load_config(choice.config);
}

std::optional<std::string> fitting_preset(const std::optional<mapping::ModelConfig>& config,
                                          std::span<const TensorSpec> tensors) {
  static const mapping::ModelConfig kNoConfig = mapping::parse_config("{}", "config.json");
  return mapping::detect_preset(config ? *config : kNoConfig, tensors);
}

std::string mapping_to_json(const mapping::Mapping& mapping) {
  nlohmann::json documents = nlohmann::json::array();
  for (const mapping::DocumentText& text : mapping::documents(mapping)) {
    const JsonDocument document =
        parse_strict_json(text.text, text.name, ErrorCode::kMappingSyntax, kMaxMappingDepth);
    documents.push_back({{"name", text.name}, {"document", document.value}});
  }
  return documents.dump();
}

namespace {

/// Returns a document of a manifest's mapping: with the lines of the preset that it still is, else
/// without lines.
mapping::DocumentText recorded_text(const std::string& name, const nlohmann::json& document) {
  constexpr std::string_view kPreset = "preset:";
  const auto* preset =
      name.starts_with(kPreset) ? mapping::known_preset(name.substr(kPreset.size())) : nullptr;
  if (preset != nullptr) {
    std::string text(mapping::preset_text(preset->name));
    if (nlohmann::json::parse(text) == document) return {name, std::move(text)};
  }
  return {name, document.dump(2), false};
}

}  // namespace

mapping::Mapping mapping_from_json(const std::string& json, const std::string& manifest_path) {
  const JsonDocument stored =
      parse_strict_json(json, manifest_path, ErrorCode::kManifestInvalid, kMaxMappingDepth);
  std::vector<mapping::DocumentText> texts;
  const bool is_list = stored.value.is_array() && !stored.value.empty();
  for (const auto& entry : is_list ? stored.value : nlohmann::json::array()) {
    if (!entry.is_object() || !entry.contains("document") || !entry.contains("name") ||
        !entry["name"].is_string()) {
      throw Error(ErrorCode::kManifestInvalid, "an entry of 'mapping' has no name or no document")
          .at({manifest_path, 0, 0, "/mapping"});
    }
    texts.push_back(recorded_text(entry["name"].get<std::string>(), entry["document"]));
  }
  if (texts.empty()) {
    throw Error(ErrorCode::kManifestInvalid, "the manifest holds no mapping")
        .at({manifest_path, 0, 0, "/mapping"})
        .help("give the mapping with --mapping or --preset");
  }
  return mapping::mapping_from_documents(texts);
}

namespace {

/// Completes the place of an error in the user's mapping file or in one that it extends: mappings
/// know their documents by paths below the file's folder, and users by the path that they typed.
void complete_place(Error& error, const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  if (folder.empty() || !error.place()) return;
  Place place = *error.place();
  const auto full = folder / place.file;
  const bool is_name = place.file != "config.json" && place.file.find(':') == std::string::npos &&
                       !place.file.starts_with('-');
  const bool is_complete = place.file.starts_with(folder.string() + "/");
  if (place.file.empty() || !is_name || is_complete || !store::is_file(full.string())) return;
  place.file = full.string();
  error.at(std::move(place));
}

/// Calls `step` and completes the places of its errors.
template <class Step>
auto with_full_places(const MappingChoice& choice, Step step) {
  try {
    return step();
  } catch (Error& error) {
    if (!choice.path.empty()) complete_place(error, choice.path);
    throw;
  }
}

}  // namespace

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

std::optional<Displaced> first_displaced(const LogicalCheckpoint& source,
                                         const mapping::Resolution& resolution) {
  for (const mapping::ResolvedTensor& resolved : resolution.tensors) {
    const LogicalTensor& tensor = source.tensors[resolved.tensor];
    for (size_t holder = 0; holder < tensor.ranks.size(); ++holder) {
      const i64 rank = tensor.ranks[holder];
      index::Region stored = tensor.side.holders->region(static_cast<int>(holder));
      auto given = rank < resolution.mesh.size() ? resolved.layout->region(rank) : std::nullopt;
      if (given && have_same_elements(*given, stored)) continue;
      return Displaced{tensor.spec.name, rank, std::move(given), std::move(stored)};
    }
  }
  return std::nullopt;
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

namespace {

bool is_engine_layout(const MappingChoice& choice) {
  return !choice.engine_layout.empty() && choice.engine_layout != kPlainLayout;
}

/// Adds the documents of the chosen layout in place of those in a manifest's mapping.
mapping::Mapping with_chosen_layout(const mapping::Mapping& mapping, const MappingChoice& choice,
                                    const mapping::ModelConfig* model) {
  if (choice.engine_layout.empty()) return mapping;
  if (!is_engine_layout(choice)) return mapping::with_layout(mapping, {});
  const layouts::EngineLayout& layout = layouts::find_layout(choice.engine_layout);
  return mapping::with_layout(mapping, layouts::documents_for(layout, model));
}

/// Throws kNotDivisible if an axis that is padded to a multiple of m does not divide over its
/// devices then. split pads further; engines do not.
void check_padding(const AppliedMapping& applied, const layouts::EngineLayout& layout) {
  for (const mapping::ResolvedTensor& tensor : applied.resolution.tensors) {
    for (const layout::LayoutAxis& axis : tensor.layout->axes()) {
      const auto* split = std::get_if<layout::Split>(&axis.expr.node());
      if (split == nullptr || split->rule.kind != layout::SplitRule::Kind::kPadded) continue;
      const i64 padded =
          (split->n + split->rule.multiple - 1) / split->rule.multiple * split->rule.multiple;
      const i64 parts = extent(applied.resolution.mesh, split->over);
      if (padded % parts == 0) continue;
      throw Error(ErrorCode::kNotDivisible,
                  fmt::format("{} rounds '{}' from {} up to {}, which does not divide by {}",
                              layout.label(), axis.logical, split->n, padded, parts))
          .tensor(applied.specs[tensor.tensor].name)
          .help("the engine refuses this number of devices, too: choose one that divides");
    }
  }
}

/// Adds the form in which files hold the tensors.
void add_output(AppliedMapping& applied, const MappingChoice& choice,
                const mapping::ModelConfig* model) {
  std::vector<bool> is_stored(applied.specs.size(), true);
  for (const size_t dropped : applied.resolution.dropped) is_stored[dropped] = false;
  auto output = mapping::output_tensors(applied.mapping, applied.specs, is_stored, model,
                                        applied.resolution.axis_sizes);
  if (output) {
    applied.output =
        std::make_shared<const std::vector<mapping::OutputTensor>>(std::move(output->tensors));
    applied.left_out = std::move(output->left_out);
  }
  if (!is_engine_layout(choice)) return;
  const layouts::EngineLayout& layout = layouts::find_layout(choice.engine_layout);
  if (model != nullptr) layouts::check_expressible(layout, *model, applied.resolution.mesh);
  if (layout.is_even) check_padding(applied, layout);
  applied.layout = layout.label();
  applied.form = layout.form;
  applied.engine_files = layouts::names_for(layout, applied.resolution.mesh);
}

}  // namespace

namespace {

/// Throws kManifestInvalid if the mapping that the manifest records contradicts its slices.
/// `resolution` is that of the recorded mapping over the manifest's mesh, or null; then only a
/// manifest that may lack --axes is resolved.
void refuse_contradiction(const LogicalCheckpoint& source, const mapping::Mapping& recorded,
                          const mapping::ModelConfig* model,
                          const mapping::Resolution* resolution) {
  if (resolution != nullptr) return require_own_slices(source, *resolution);
  const format::Manifest& manifest = *source.parts.front().manifest;
  if (!may_lack_axes(manifest, recorded)) return;
  mapping::ResolveOptions options;
  options.mesh = manifest.mesh;
  options.allow_empty_shards = true;
  require_own_slices(source, mapping::resolve(recorded, source.specs(), model, options));
}

AppliedMapping applied_mapping(const MappingChoice& typed, const LogicalCheckpoint& source,
                               const std::function<void(Error)>& report) {
  const MappingChoice choice = with_own_options(typed, source);
  const auto config = model_config(choice, source);
  const mapping::ModelConfig* model = config ? &*config : nullptr;
  const mapping::Mapping chosen = choose_mapping(choice, source);
  mapping::Mapping mapping = with_chosen_layout(chosen, choice, model);
  const bool keeps_documents = mapping.texts().size() == chosen.texts().size() &&
                               choice.settings.empty() && choice.axis_mapping.empty();
  mapping = with_typed_documents(std::move(mapping), choice);
  mapping::ResolveOptions options = resolve_options(choice);
  if (is_engine_layout(choice)) {
    const layouts::EngineLayout& layout = layouts::find_layout(choice.engine_layout);
    const mesh::Mesh mesh = mapping::choose_mesh(mapping, options);
    options.mesh = layouts::with_axes(layouts::names_for(layout, mesh), mesh);
    options.require_even = options.require_even || layout.is_even;
  }
  options.report = report;
  std::vector<TensorSpec> specs = source.specs();
  mapping::Resolution resolution = mapping::resolve(mapping, specs, model, options);
  if (is_own(typed, source) && source.is_sharded() && typed.layout.empty()) {
    const bool is_recorded =
        keeps_documents && resolution.mesh == source.parts.front().manifest->mesh;
    refuse_contradiction(source, chosen, model, is_recorded ? &resolution : nullptr);
  }
  AppliedMapping applied{std::move(mapping), std::move(resolution),     std::move(specs),
                         choice.layout,      choice.allow_empty_shards, choice.config};
  applied.doubts = mapping::doubtful_cuts(applied.resolution, applied.specs, model);
  if (report == nullptr) add_output(applied, choice, model);
  return applied;
}

}  // namespace

AppliedMapping apply_mapping(const MappingChoice& choice, const LogicalCheckpoint& source,
                             const std::function<void(Error)>& report) {
  return with_full_places(choice, [&] { return applied_mapping(choice, source, report); });
}

}  // namespace shardtool::api
