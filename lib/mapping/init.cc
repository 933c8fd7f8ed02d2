#include "lib/mapping/init.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>

#include "lib/mapping/document/form_pattern.h"
#include "lib/mapping/match/companions.h"
#include "lib/mapping/match/rule_matcher.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/propose/kinds.h"
#include "lib/mapping/propose/propose.h"

namespace shardtool::mapping {
namespace {

using nlohmann::json;

/// The mesh axes of `ref` that the mesh has.
json present_mesh(const json& ref, const mesh::Mesh& mesh) {
  if (ref.is_null()) return nullptr;
  json kept = json::array();
  for (const json& axis : ref.is_array() ? ref : json::array({ref})) {
    if (mesh.has_axis(mesh::parse_axis_ref(axis.get<std::string>()).axis)) kept.push_back(axis);
  }
  if (kept.empty()) return nullptr;
  return kept.size() == 1 ? kept[0] : kept;
}

/// The axes of all documents; each field comes from the nearest document that has it.
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

using Kinds = std::map<std::string, TensorKind>;  ///< by form of the name

/// Returns the tensors that the mapping does not cover, by the form of their names.
Kinds unknown_kinds(const Mapping& mapping, std::span<const TensorSpec> tensors,
                    const ModelConfig* config) {
  RuleMatcher rules(mapping, config);
  Companions companions(mapping);
  std::vector<TensorSpec> unknown;
  for (const TensorSpec& tensor : tensors) {
    if (!rules.find(tensor.name) && companions.find(tensor).empty()) unknown.push_back(tensor);
  }
  return kinds_of(unknown);
}

/// Writes "key": followed by { or [, one entry per line, and the closing bracket.
std::string block(std::string_view key, char open, const std::vector<std::string>& entries,
                  char close) {
  std::string text = fmt::format("  \"{}\": {}\n", key, open);
  for (size_t i = 0; i < entries.size(); ++i) {
    text += fmt::format("    {}{}\n", entries[i], i + 1 < entries.size() ? "," : "");
  }
  return text + fmt::format("  {}", close);
}

/// Returns the entries "version", "when" and "extends".
std::vector<std::string> head(const ModelConfig* config, std::string_view preset) {
  std::vector<std::string> parts = {"  \"version\": 1"};
  if (const auto names = config ? config->architectures() : std::vector<std::string>();
      !names.empty()) {
    parts.push_back(fmt::format("  \"when\": {}",
                                json{{"architectures", json::array({names.front()})}}.dump()));
  }
  if (!preset.empty()) parts.push_back(fmt::format("  \"extends\": [\"preset:{}\"]", preset));
  return parts;
}

std::string mesh_block(const mesh::Mesh& mesh) {
  std::vector<std::string> axes;
  for (const mesh::MeshAxis& axis : mesh.axes()) {
    axes.push_back(json{{"axis", axis.name}, {"size", axis.size}}.dump());
  }
  return block("mesh", '[', axes, ']');
}

std::string axes_block(const Mapping& mapping, const mesh::Mesh& mesh) {
  std::vector<std::string> axes;
  for (const auto& [name, spec] : merged_axes(mapping, mesh)) {
    axes.push_back(fmt::format("\"{}\": {}", name, spec.dump()));
  }
  return block("axes", '{', axes, '}');
}

/// Rules that replicate the kinds.
std::vector<std::string> replicating(const Kinds& kinds) {
  std::vector<std::string> rules;
  for (const auto& [form, kind] : kinds) {
    // Keys in reading order: pattern, strategy, note.
    rules.push_back(fmt::format(R"({{{},"strategy":"replicate","note":{}}})",
                                form_pattern(form, ":"), json(kind.note()).dump()));
  }
  return rules;
}

std::string dims_text(const ProposedRule& rule) {
  std::vector<std::string> dims;
  for (const std::string& dim : rule.dims) dims.push_back(dim.empty() ? "null" : json(dim).dump());
  return fmt::format("\"dims\":[{}]", fmt::join(dims, ","));
}

/// Writes a proposed rule: pattern, cut, the number that names an expert, note.
std::string rule_text(const ProposedRule& rule, const mesh::Mesh& mesh) {
  constexpr std::string_view kExpert = "experts.*";
  std::string match = form_pattern(rule.form, ":");
  std::string index;
  const size_t expert = match.find(kExpert);
  if (!rule.dims.empty() && expert != match.npos && mesh.has_axis("ep")) {
    match.replace(expert, kExpert.size(), "experts.<expert>");
    index = R"("index":{"expert":"experts"},)";
  }
  const std::string cut = rule.dims.empty() ? R"("strategy":"replicate")" : dims_text(rule);
  const std::string bias = rule.is_reduced_bias ? R"("bias":"after_reduction",)" : "";
  return fmt::format(
      R"({{{},{},{}{}"note":{}}})", match, cut, index, bias,
      json(fmt::format("{}: {}; {}", to_string(rule.certainty), rule.reason, rule.tensors)).dump());
}

/// Writes the axes and rules of a model that no preset knows.
void add_proposal(const Proposal& proposal, const mesh::Mesh& mesh, std::vector<std::string>& parts,
                  InitialMapping& initial) {
  std::vector<std::string> axes;
  std::map<std::string, std::string> texts = proposal.axes;
  std::vector<std::string> rules;
  for (const ProposedRule& rule : proposal.rules) {
    rules.push_back(rule_text(rule, mesh));
    if (rules.back().find("\"index\"") != std::string::npos) texts["experts"] = "\"ep\"";
    initial.proposed.push_back({rule.form, rule.certainty, rule.reason});
    if (rule.certainty == Certainty::kUnknown) initial.replicated.push_back(rule.form);
  }
  for (const auto& [name, text] : texts) axes.push_back(fmt::format("\"{}\": {}", name, text));
  if (!axes.empty()) parts.push_back(block("axes", '{', axes, '}'));
  if (!rules.empty()) parts.push_back(block("rules", '[', rules, ']'));
}

}  // namespace

InitialMapping init_mapping(const ModelConfig* config, std::string_view preset,
                            const mesh::Mesh& mesh, std::span<const TensorSpec> tensors) {
  std::vector<std::string> parts = head(config, preset);
  if (!mesh.axes().empty()) parts.push_back(mesh_block(mesh));
  if (!mesh.device_order().empty())
    parts.push_back(fmt::format("  \"device_order\": {}", json(mesh.device_order()).dump()));
  InitialMapping initial;
  if (preset.empty()) {
    add_proposal(propose(config, tensors, mesh), mesh, parts, initial);
  } else {
    const Mapping mapping = load_preset(preset);
    parts.push_back(axes_block(mapping, mesh));
    const Kinds kinds = unknown_kinds(mapping, tensors, config);
    if (!kinds.empty()) parts.push_back(block("rules", '[', replicating(kinds), ']'));
    for (const auto& [form, kind] : kinds) initial.replicated.push_back(form);
  }
  for (const std::string& part : parts) {
    initial.text += (initial.text.empty() ? "{\n" : ",\n") + part;
  }
  initial.text += "\n}\n";
  return initial;
}

}  // namespace shardtool::mapping
