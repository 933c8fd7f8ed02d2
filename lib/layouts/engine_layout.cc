#include "lib/layouts/engine_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/json_reader.h"
#include "lib/base/text.h"
#include "lib/layouts/embedded.h"
#include "lib/mapping/document/document.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/quantization.h"
#include "lib/mapping/resolve/read_parts.h"

namespace shardtool::layouts {
namespace {

constexpr std::string_view kSize = ".size";

/// Field of a pattern: {name}, {name+1} or {name:05}.
struct Field {
  std::string name;
  i64 first = 0;     ///< number of the first one
  size_t width = 0;  ///< digits
};

Field parse_field(const std::string& text) {
  const size_t name_end = std::min(text.find_first_of("+:"), text.size());
  Field field{text.substr(0, name_end)};
  if (text.find('+') != text.npos) field.first = std::stoll(text.substr(text.find('+') + 1));
  if (text.find(':') != text.npos) field.width = std::stoul(text.substr(text.find(':') + 1));
  return field;
}

/// Replaces every field of a pattern by its number.
std::string fill(const std::string& pattern, const std::function<i64(const std::string&)>& number) {
  std::string text;
  for (size_t at = 0; at < pattern.size();) {
    const size_t begin = std::min(pattern.find('{', at), pattern.size());
    text += pattern.substr(at, begin - at);
    if (begin == pattern.size()) break;
    const size_t end = pattern.find('}', begin);
    const Field field = parse_field(pattern.substr(begin + 1, end - begin - 1));
    text += fmt::format("{:0{}}", number(field.name) + field.first, field.width);
    at = end + 1;
  }
  return text;
}

FileNames decode_file_names(const std::string& pattern) {
  FileNames names{pattern, {}};
  fill(pattern, [&names](const std::string& field) {
    names.has_rank = names.has_rank || field == "rank";
    names.has_parts = names.has_parts || field == "part";
    const std::string axis = field.substr(0, field.rfind(kSize));
    const bool is_known = std::find(names.axes.begin(), names.axes.end(), axis) != names.axes.end();
    const bool is_axis = field != "rank" && field != "part" && field != "parts";
    if (is_axis && !is_known) names.axes.push_back(axis);
    return i64{0};
  });
  return names;
}

std::vector<ModelCase> decode_cases(const nlohmann::json& json) {
  using Names = std::vector<std::string>;
  std::vector<ModelCase> cases;
  for (const auto& one : json) {
    cases.push_back({one.at("config"), one.contains("is") ? one.at("is").dump() : "",
                     one.value("mesh_axes", Names{}), one.value("model_types", Names{}),
                     one.value("quantised", Names{}), one.at("reason")});
  }
  return cases;
}

EngineLayout decode(std::string_view text) {
  const auto json = nlohmann::json::parse(text);
  EngineLayout layout;
  layout.text = text;
  layout.name = json.at("layout");
  layout.version = json.at("version");
  layout.description = json.at("description");
  layout.other_axes = json.at("other_axes");
  layout.form.format = json.value("format", layout.form.format);
  layout.form.has_chunks = json.value("chunks", false);
  layout.is_even = json.value("even", true);
  layout.pads_parts = json.value("pads_parts", false);
  layout.proof = json.value("proof", "");
  layout.refusals = decode_cases(json.at("refuse"));
  layout.experimental = decode_cases(json.value("experimental", nlohmann::json::array()));
  layout.saved = decode_cases(json.value("saved", nlohmann::json::array()));
  for (const std::string pattern : json.at("files")) {
    layout.files.push_back(decode_file_names(pattern));
  }
  for (const auto& [name, document] : json.at("documents").items()) {
    layout.documents.push_back(
        {fmt::format("{}{}#{}", mapping::kLayoutPrefix, layout.label(), name), document.dump(1)});
  }
  for (const auto& models : json.at("models")) {
    LayoutModels& added = layout.models.emplace_back();
    models.at("model_types").get_to(added.model_types);
    models.at("documents").get_to(added.documents);
    models.at("proof").get_to(added.proof);
    added.quantised = models.value("quantised", added.quantised);
  }
  if (json.contains("ranks")) layout.ranks = decode_rank_form(json.at("ranks"));
  layout.left_out = json.value("left_out", layout.left_out);
  layout.own_files = json.value("own_files", layout.own_files);
  return layout;
}

/// Numbers of a version: "0.32" is [0, 32].
std::vector<int> numbers(const std::string& version) {
  std::vector<int> parts;
  for (size_t begin = 0; begin <= version.size();) {
    const size_t end = std::min(version.find('.', begin), version.size());
    parts.push_back(std::stoi(version.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

std::vector<EngineLayout> decode_all() {
  std::vector<EngineLayout> layouts;
  for (const EmbeddedFile& file : embedded_layouts()) layouts.push_back(decode(file.text));
  std::sort(layouts.begin(), layouts.end(), [](const EngineLayout& a, const EngineLayout& b) {
    return a.name != b.name ? a.name < b.name : numbers(a.version) > numbers(b.version);
  });
  return layouts;
}

Error unsupported_model(const EngineLayout& layout, const std::string& model_type) {
  std::vector<std::string> known;
  for (const LayoutModels& models : layout.models) {
    known.insert(known.end(), models.model_types.begin(), models.model_types.end());
  }
  return Error(ErrorCode::kUnsupported,
               fmt::format("the layout {} has no table of names for the model type '{}'",
                           layout.label(), quote_for_message(model_type, 60)))
      .note("known", fmt::format("{}", fmt::join(known, ", ")))
      .help("a mapping file can have the names: \"store\" writes them, \"read\" reads them");
}

/// Use of a layout by its "files".
LayoutUse use_of(std::string_view text) {
  JsonReader in(text, {}, 16);
  in.begin_object();
  for (std::string key; in.next_key(key) && key != "files";) in.skip();
  in.begin_array();
  return in.next_element() ? LayoutUse::kWritten : LayoutUse::kOnlyRead;
}

}  // namespace

std::span<const EngineLayout> engine_layouts() {
  static const std::vector<EngineLayout> decoded = decode_all();
  return decoded;
}

std::vector<std::string> layout_names(LayoutUse use) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_layouts()) {
    if (use_of(file.text) != use) continue;
    std::string label(file.name);  // "vllm-0.32"
    const size_t dash = label.rfind('-');
    const std::string name = label.substr(0, dash);
    if (names.empty() || names.back() != name) names.push_back(name);
    label[dash] = '@';
    names.push_back(std::move(label));
  }
  return names;
}

bool fuses(const EngineLayout& layout) {
  if (layout.documents.empty()) return false;
  const mapping::Mapping tables(layout.documents);
  return std::ranges::any_of(tables.documents(), [](const mapping::Document& document) {
    return std::ranges::any_of(document.store, [](const mapping::StoreRule& rule) {
      return rule.of.size() > 1 || !rule.stack.empty() || rule.join > 0;
    });
  });
}

bool has_read_rules(const EngineLayout& layout) {
  return !layout.documents.empty() && mapping::has_read_rules(mapping::Mapping(layout.documents));
}

const std::vector<std::string>& read_layout_names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const EngineLayout& layout : engine_layouts()) {
      if (layout.form.has_chunks) continue;
      if (names.empty() || names.back() != layout.name) names.push_back(layout.name);
      names.push_back(layout.label());
    }
    return names;
  }();
  return all;
}

const EngineLayout& find_layout(std::string_view label, std::span<const std::string> others) {
  std::vector<std::string> labels(others.begin(), others.end());
  std::vector<std::string> known = labels;
  for (const EngineLayout& layout : engine_layouts()) {
    if (label == layout.name || label == layout.label()) return layout;
    labels.push_back(layout.label());
    known.insert(known.end(), {layout.name, layout.label()});
  }
  Error error(ErrorCode::kUsage,
              fmt::format("there is no layout '{}'", quote_for_message(std::string(label), 60)));
  error.note("known", fmt::format("{}", fmt::join(labels, ", ")));
  const std::string hint = did_you_mean(label, known);
  if (!hint.empty()) error.help(hint);
  throw error.help("a layout without a version, such as vllm, is the newest known one");
}

namespace {

constexpr std::string_view kQuantization = "quantization_config";

/// The layout's table for a model. Requires a layout with tables.
const LayoutModels& models_of(const EngineLayout& layout, const mapping::ModelConfig* config) {
  if (config == nullptr) {
    throw Error(ErrorCode::kConfig,
                fmt::format("the layout {} needs config.json for the model's type", layout.label()))
        .help("put it beside the files, or give it with --model-config");
  }
  const std::string type = config->model_type();
  const auto models =
      std::find_if(layout.models.begin(), layout.models.end(), [&](const LayoutModels& candidate) {
        return std::find(candidate.model_types.begin(), candidate.model_types.end(), type) !=
               candidate.model_types.end();
      });
  if (models == layout.models.end()) throw unsupported_model(layout, type);
  return *models;
}

/// True if "when" of the document does not exclude the model.
bool is_for(const mapping::DocumentText& document, const mapping::ModelConfig& config) {
  const auto head = mapping::decode_head(document.text, document.name);
  return std::ranges::all_of(head.when.config, [&](const mapping::ConfigCondition& condition) {
    return holds(condition, config);
  });
}

/// True if a model on this mesh is the case.
bool is_for(const ModelCase& one, const mapping::ModelConfig& config, const mesh::Mesh& mesh) {
  const auto has = [](const std::vector<std::string>& list, const std::string& value) {
    return list.empty() || std::ranges::find(list, value) != list.end();
  };
  const auto is_used = [&mesh](const std::string& name) {
    return std::ranges::any_of(mesh.axes(), [&name](const mesh::MeshAxis& axis) {
      return axis.name == name && axis.size > 1;
    });
  };
  const nlohmann::json* value = config.find(one.config);
  const std::string found = value == nullptr ? "null" : value->dump();
  return (one.is.empty() ? found != "null" : found == one.is) &&
         has(one.model_types, config.model_type()) &&
         has(one.quantised, mapping::quantization_tag(config).value_or("")) &&
         std::ranges::all_of(one.mesh_axes, is_used);
}

bool stores_quantised(const EngineLayout& layout, const mapping::ModelConfig& config) {
  if (layout.models.empty()) return false;
  const auto& forms = models_of(layout, &config).quantised;
  if (forms.empty()) return false;
  const auto tag = mapping::quantization_tag(config);
  return tag && std::find(forms.begin(), forms.end(), *tag) != forms.end();
}

}  // namespace

std::vector<mapping::DocumentText> documents_for(const EngineLayout& layout,
                                                 const mapping::ModelConfig* config) {
  if (layout.models.empty()) return {};
  std::vector<mapping::DocumentText> documents;
  for (const std::string& name : models_of(layout, config).documents) {
    const auto document = std::find_if(
        layout.documents.begin(), layout.documents.end(),
        [&](const mapping::DocumentText& text) { return text.name.ends_with("#" + name); });
    if (is_for(*document, *config)) documents.push_back(*document);
  }
  return documents;
}

void check_expressible(const EngineLayout& layout, const mapping::ModelConfig& config,
                       const mesh::Mesh& mesh) {
  for (const ModelCase& refusal : layout.refusals) {
    if (refusal.config == kQuantization && stores_quantised(layout, config)) continue;
    if (!is_for(refusal, config, mesh)) continue;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("the layout {} cannot store this model", layout.label()))
        .note("why", refusal.reason)
        .note("found", fmt::format("'{}' in {}", refusal.config, config.file()))
        .help("write the plain layout");
  }
}

std::vector<std::string> experimental_reasons(const EngineLayout& layout,
                                              const mapping::ModelConfig& config,
                                              const mesh::Mesh& mesh) {
  std::vector<std::string> reasons;
  for (const ModelCase& one : layout.experimental) {
    if (is_for(one, config, mesh)) reasons.push_back(one.reason);
  }
  return reasons;
}

std::vector<std::string> saved_reasons(const EngineLayout& layout,
                                       const mapping::ModelConfig& config, const mesh::Mesh& mesh) {
  std::vector<std::string> reasons;
  for (const ModelCase& one : layout.saved) {
    if (is_for(one, config, mesh)) reasons.push_back(one.reason);
  }
  return reasons;
}

const FileNames& names_for(const EngineLayout& layout, const mesh::Mesh& mesh) {
  if (layout.files.empty()) {
    throw Error(ErrorCode::kUnsupported, fmt::format("the layout {} is only read", layout.label()))
        .help(
            fmt::format("every command reads such files as {0}:PATH, for example `shardtool merge "
                        "{0}:PATH -o OUTPUT`",
                        layout.name));
  }
  std::string missing;
  for (const FileNames& names : layout.files) {
    const auto without_field =
        std::find_if(mesh.axes().begin(), mesh.axes().end(), [&](const mesh::MeshAxis& axis) {
          return axis.size > 1 && !names.has_rank &&
                 std::find(names.axes.begin(), names.axes.end(), axis.name) == names.axes.end();
        });
    if (without_field == mesh.axes().end()) return names;
    missing = without_field->name;
  }
  throw Error(ErrorCode::kUnsupported,
              fmt::format("the file names of the layout {} have no field for the mesh axis '{}'",
                          layout.label(), missing))
      .note("found", to_string(mesh))
      .note("file names", layout.files.back().pattern)
      .help(layout.other_axes);
}

mesh::Mesh with_axes(const FileNames& names, const mesh::Mesh& mesh) {
  std::vector<mesh::MeshAxis> axes(mesh.axes().begin(), mesh.axes().end());
  for (const std::string& name : names.axes) {
    const auto is_it = [&name](const mesh::MeshAxis& axis) { return axis.name == name; };
    if (std::none_of(axes.begin(), axes.end(), is_it)) axes.push_back({name, 1});
  }
  return {std::move(axes), {mesh.device_order().begin(), mesh.device_order().end()}};
}

std::string file_name(const FileNames& names, const mesh::Mesh& mesh, i64 rank, size_t part,
                      size_t parts) {
  return fill(names.pattern, [&](const std::string& field) {
    if (field == "rank") return rank;
    if (field == "part") return static_cast<i64>(part);
    if (field == "parts") return static_cast<i64>(parts);
    if (field.ends_with(kSize)) {
      return mesh.axis(field.substr(0, field.size() - kSize.size())).size;
    }
    return mesh.index_on(field, rank);
  });
}

}  // namespace shardtool::layouts
