#include "shardtool/mapping/init.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "shardtool/mapping/companions.h"
#include "shardtool/mapping/name_form.h"
#include "shardtool/mapping/presets.h"
#include "shardtool/mapping/rule_matcher.h"

namespace shardtool::mapping {
namespace {

using nlohmann::json;

/// The axis' mesh axes without those that the mesh lacks.
json present_mesh(const json& ref, const mesh::Mesh& mesh) {
  if (ref.is_null()) return nullptr;
  json kept = json::array();
  for (const json& axis : ref.is_array() ? ref : json::array({ref})) {
    if (mesh.has_axis(mesh::parse_axis_ref(axis.get<std::string>()).axis)) kept.push_back(axis);
  }
  if (kept.empty()) return nullptr;
  return kept.size() == 1 ? kept[0] : kept;
}

/// The axes of all documents, field by field from the nearest one.
std::map<std::string, json> merged_axes(const Mapping& mapping, const mesh::Mesh& mesh) {
  std::map<std::string, json> axes;
  for (const DocumentText& document : mapping.texts()) {
    const json specs = json::parse(document.text).value("axes", json::object());
    for (const auto& [name, spec] : specs.items()) {
      json fields = spec.is_object() ? spec : json{{"mesh", spec}};
      fields.update(axes.emplace(name, json::object()).first->second);
      axes[name] = std::move(fields);
    }
  }
  for (auto& [name, fields] : axes) {
    if (fields.contains("mesh")) fields["mesh"] = present_mesh(fields["mesh"], mesh);
  }
  return axes;
}

/// The forms of the names that the mapping does not know.
std::set<std::string> unknown_forms(const Mapping& mapping, std::span<const TensorSpec> tensors) {
  RuleMatcher rules(mapping);
  Companions companions(mapping);
  std::set<std::string> forms;
  for (const TensorSpec& tensor : tensors) {
    if (!rules.find(tensor.name) && companions.find(tensor).empty())
      forms.insert(name_form(tensor.name));
  }
  return forms;
}

/// "key": { or [, one entry a line, and the closing bracket.
std::string block(std::string_view key, char open, const std::vector<std::string>& entries,
                  char close) {
  std::string text = fmt::format("  \"{}\": {}\n", key, open);
  for (size_t i = 0; i < entries.size(); ++i) {
    text += fmt::format("    {}{}\n", entries[i], i + 1 < entries.size() ? "," : "");
  }
  return text + fmt::format("  {}", close);
}

}  // namespace

std::string init_mapping(const ModelConfig& config, std::string_view preset, const mesh::Mesh& mesh,
                         std::span<const TensorSpec> tensors) {
  const Mapping mapping = load_preset(preset);
  std::vector<std::string> mesh_axes;
  for (const mesh::MeshAxis& axis : mesh.axes()) {
    mesh_axes.push_back(json{{"axis", axis.name}, {"size", axis.size}}.dump());
  }
  std::vector<std::string> axes;
  for (const auto& [name, spec] : merged_axes(mapping, mesh)) {
    axes.push_back(fmt::format("\"{}\": {}", name, spec.dump()));
  }
  std::vector<std::string> rules;
  for (const std::string& form : unknown_forms(mapping, tensors)) {
    rules.push_back(json{{"match", form}, {"strategy", "replicate"}}.dump());
  }
  std::vector<std::string> parts = {"  \"version\": 1"};
  if (const auto names = config.architectures(); !names.empty()) {
    parts.push_back(fmt::format("  \"when\": {}",
                                json{{"architectures", json::array({names.front()})}}.dump()));
  }
  parts.push_back(fmt::format("  \"extends\": [\"preset:{}\"]", preset));
  if (!mesh_axes.empty()) parts.push_back(block("mesh", '[', mesh_axes, ']'));
  parts.push_back(block("axes", '{', axes, '}'));
  if (!rules.empty()) parts.push_back(block("rules", '[', rules, ']'));
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "{\n" : ",\n") + part;
  return text + "\n}\n";
}

}  // namespace shardtool::mapping
