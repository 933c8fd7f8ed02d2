#include "lib/api/mapping/recorded_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/base/strict_json.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"

namespace shardtool::api {
namespace {

constexpr int kMaxMappingDepth = 64;

/// Returns a document of a manifest's mapping: with the lines of the preset that it still is, else
/// without lines.
mapping::DocumentText recorded_text(const std::string& name, const nlohmann::json& document) {
  constexpr std::string_view kPreset = "preset:";
  const auto* preset =
      name.starts_with(kPreset) ? mapping::known_preset(name.substr(kPreset.size())) : nullptr;
  if (preset != nullptr) {
    std::string text(mapping::preset_text(preset->name));
    if (nlohmann::json::parse(text) == document) return {name, std::move(text), true, true};
  }
  return {name, document.dump(2), false, true};
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

}  // namespace

bool is_recorded(const MappingChoice& choice, const LogicalCheckpoint& source) {
  const auto& manifest = source.parts.front().manifest;
  return choice.path.empty() && choice.preset.empty() && manifest && !manifest->mapping.empty();
}

MappingChoice with_recorded_options(const MappingChoice& typed, const LogicalCheckpoint& source) {
  MappingChoice choice = typed;
  if (!is_recorded(typed, source)) return choice;
  const format::Manifest& manifest = *source.parts.front().manifest;
  if (choice.layout.empty() && choice.axis_mapping.empty()) choice.layout = manifest.axes;
  choice.allow_empty_shards = choice.allow_empty_shards || manifest.allows_empty_shards;
  return choice;
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
  try {
    return mapping::mapping_from_documents(texts);
  } catch (Error& error) {
    // The file of this name is not the one that was read.
    if (error.place()) error.note("document", mapping::describe(*error.place()));
    throw std::move(error).at({manifest_path, 0, 0, "/mapping"});
  }
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

void refuse_contradiction(const LogicalCheckpoint& source, const mapping::Mapping& recorded,
                          const mapping::ModelConfig* model,
                          const mapping::Resolution* resolution) {
  if (resolution != nullptr) return require_own_slices(source, *resolution);
  mapping::ResolveOptions options;
  options.mesh = source.parts.front().manifest->mesh;
  options.layout = source.parts.front().manifest->axes;
  options.allow_empty_shards = true;
  require_own_slices(source, mapping::resolve(recorded, source.specs(), model, options));
}

}  // namespace shardtool::api
