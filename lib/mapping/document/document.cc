#include "lib/mapping/document/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/strict_json.h"
#include "lib/mapping/document/decode.h"
#include "lib/mapping/document/identifier.h"

namespace shardtool::mapping {
namespace {

constexpr int kMaxDocumentDepth = 32;

void decode_version(const JsonValue& value) {
  const i64 version = value.integer(1);
  if (version == 1) return;
  throw value
      .error(ErrorCode::kMappingSchema, fmt::format("this is a mapping of version {}", version))
      .note("expected", "version 1")
      .help("use a newer shardtool, or write the mapping in version 1");
}

ConfigCondition decode_condition(const std::string& path, const JsonValue& value) {
  if (!is_config_path(path)) {
    throw value
        .error(ErrorCode::kMappingSchema, fmt::format("'{}' is not a path into config.json", path))
        .help("a path is keys joined by dots, such as \"text_config.hidden_size\"");
  }
  ConfigCondition condition{path, {}};
  for (const JsonValue& allowed : value.elements(1)) condition.values.push_back(allowed.scalar());
  return condition;
}

}  // namespace

std::vector<ConfigCondition> decode_conditions(const JsonValue& value) {
  std::vector<ConfigCondition> conditions;
  for (const auto& [path, values] : value.members()) {
    conditions.push_back(decode_condition(path, values));
  }
  return conditions;
}

namespace {

WhenSpec decode_when(const JsonValue& value) {
  WhenSpec when;
  value.object({
      {"architectures", [&](const JsonValue& v) { when.architectures = decode_texts(v, 1); }},
      {"model_type", [&](const JsonValue& v) { when.model_types = decode_texts(v, 1); }},
      {"tensors_present",
       [&](const JsonValue& v) {
         for (const JsonValue& glob : v.elements())
           when.tensors_present.push_back(decode_glob(glob).text());
       }},
      {"config", [&](const JsonValue& v) { when.config = decode_conditions(v); }},
  });
  return when;
}

MeshAxisSpec decode_mesh_axis(const JsonValue& value) {
  MeshAxisSpec axis;
  axis.place = value.place();
  value.object({
      {"axis", [&](const JsonValue& v) { axis.axis = v.identifier(); }, true},
      {"size",
       [&](const JsonValue& v) {
         if (v.is_number()) {
           axis.size = v.integer(1);
         } else if (!v.is_text() || v.text() != "auto") {
           v.refuse("an integer of 1 or more, or \"auto\"");
         }
       },
       true},
      {"role",
       [&](const JsonValue& v) {
         axis.is_gathered = v.one_of<bool>({{"tp", false},
                                            {"ep", false},
                                            {"pp", false},
                                            {"dp", false},
                                            {"fsdp", true},
                                            {"cp", false},
                                            {"other", false}});
       }},
  });
  return axis;
}

std::vector<MeshAxisSpec> decode_mesh(const JsonValue& value) {
  if (!value.is_array()) value.refuse("a list of axes: [{\"axis\": \"tp\", \"size\": 4}]");
  std::vector<MeshAxisSpec> mesh;
  for (const JsonValue& axis : value.elements(1)) mesh.push_back(decode_mesh_axis(axis));
  return mesh;
}

/// Checks that the key of an object is the name of a logical axis.
std::string axis_name(const std::string& key, const JsonValue& value) {
  if (is_identifier(key)) return key;
  throw value.error(ErrorCode::kMappingSchema, fmt::format("'{}' is not the name of an axis", key))
      .help("names are letters, digits and _, and do not begin with a digit");
}

std::map<std::string, AxisSpec> decode_axes(const JsonValue& value) {
  std::map<std::string, AxisSpec> axes;
  for (const auto& [key, axis] : value.members()) axes[axis_name(key, axis)] = decode_axis(axis);
  return axes;
}

std::map<std::string, std::map<std::string, MeshRef>> decode_layouts(const JsonValue& value) {
  std::map<std::string, std::map<std::string, MeshRef>> layouts;
  for (const auto& [name, axes] : value.members()) {
    auto& layout = layouts[name];
    for (const auto& [key, ref] : axes.members())
      layout[axis_name(key, ref)] = decode_mesh_ref(ref);
  }
  return layouts;
}

std::vector<Rule> decode_rules(const JsonValue& value, std::string_view list,
                               const LayerSets& sets) {
  std::vector<Rule> rules;
  std::map<std::string, int> line_of_label;
  for (const JsonValue& item : value.elements()) {
    rules.push_back(decode_rule(item, fmt::format("{}/{}", list, rules.size()), sets));
    const Rule& rule = rules.back();
    const auto [first, is_new] = line_of_label.emplace(rule.label, rule.place.line);
    if (is_new) continue;
    throw item.error(ErrorCode::kMappingSchema, fmt::format("the id '{}' occurs twice", rule.label))
        .note("first", fmt::format("line {}", first->second));
  }
  return rules;
}

std::vector<std::pair<std::string, Place>> decode_extends(const JsonValue& value) {
  std::vector<std::pair<std::string, Place>> extends;
  for (const JsonValue& name : value.elements()) {
    extends.emplace_back(name.nonempty_text(), name.place());
    const auto same = [&](const auto& other) { return other.first == extends.back().first; };
    if (std::count_if(extends.begin(), extends.end(), same) > 1)
      name.refuse("a document that is not listed already");
  }
  return extends;
}

UnknownPolicy decode_unknown(const JsonValue& value) {
  return value.one_of<UnknownPolicy>({{"error", UnknownPolicy::kError},
                                      {"warn", UnknownPolicy::kWarn},
                                      {"replicate", UnknownPolicy::kReplicate}});
}

UnusedPolicy decode_unused(const JsonValue& value) {
  return value.one_of<UnusedPolicy>({{"error", UnusedPolicy::kError},
                                     {"warn", UnusedPolicy::kWarn},
                                     {"ignore", UnusedPolicy::kIgnore}});
}

Straddle decode_straddle(const JsonValue& value) {
  return value.one_of<Straddle>({{"error", Straddle::kError},
                                 {"uneven-aligned", Straddle::kUnevenAligned},
                                 {"pad", Straddle::kPad},
                                 {"replicate-scale", Straddle::kReplicateScale},
                                 {"refine", Straddle::kRefine}});
}

ReducedBias decode_reduced_bias(const JsonValue& value) {
  return value.one_of<ReducedBias>({{"replicate", ReducedBias::kReplicate},
                                    {"first", ReducedBias::kFirst},
                                    {"divide", ReducedBias::kDivide}});
}

LayerSets decode_layer_sets(const JsonValue& value) {
  LayerSets sets;
  for (const auto& [name, set] : value.members()) {
    if (!is_identifier(name)) set.refuse("the name of a set of layers as its key");
    sets[name] = decode_layer_set(set, {}, {});
  }
  return sets;
}

/// Parts of a document that are decoded after the others, because they refer to them.
struct ReadLast {
  LayerSets layer_sets;
  std::optional<JsonValue> rules, overrides, drop;
};

void decode_all_rules(const ReadLast& last, Document& d) {
  if (last.rules) d.rules = decode_rules(*last.rules, "rules", last.layer_sets);
  if (last.overrides) d.overrides = decode_rules(*last.overrides, "overrides", last.layer_sets);
  if (!last.drop) return;
  for (const JsonValue& rule : last.drop->elements()) {
    d.drop.push_back(decode_drop(rule, last.layer_sets));
  }
}

std::optional<std::vector<Glob>> decode_kept_names(const JsonValue& value) {
  std::vector<Glob> names;
  if (value.is_text()) {
    const bool keeps_all = value.one_of<bool>({{"keep", true}, {"error", false}});
    return keeps_all ? std::nullopt : std::optional(std::move(names));
  }
  if (!value.is_array()) value.refuse("\"keep\", \"error\" or a list of globs");
  for (const JsonValue& name : value.elements(1)) names.push_back(decode_glob(name));
  return names;
}

std::vector<JsonValue::Field> document_fields(Document& d, ReadLast& last) {
  return {
      {"version", decode_version, true},
      {"name", [](const JsonValue& v) { v.text(); }},
      {"description", [&](const JsonValue& v) { d.description = v.text(); }},
      {"extends", [&](const JsonValue& v) { d.extends = decode_extends(v); }},
      {"when", [&](const JsonValue& v) { d.when = decode_when(v); }},
      {"quantization", [&](const JsonValue& v) { d.quantization = decode_texts(v, 1); }},
      {"refuse", [&](const JsonValue& v) { d.refuse = v.nonempty_text(); }},
      {"mesh", [&](const JsonValue& v) { d.mesh = decode_mesh(v); }},
      {"device_order",
       [&](const JsonValue& v) {
         d.device_order.place = v.place();
         for (const JsonValue& rank : v.elements(1))
           d.device_order.ranks.push_back(rank.integer(0));
       }},
      {"axes", [&](const JsonValue& v) { d.axes = decode_axes(v); }},
      {"layouts", [&](const JsonValue& v) { d.layouts = decode_layouts(v); }},
      {"layer_sets", [&](const JsonValue& v) { last.layer_sets = decode_layer_sets(v); }},
      {"rules", [&](const JsonValue& v) { last.rules = v; }},
      {"overrides", [&](const JsonValue& v) { last.overrides = v; }},
      {"companions",
       [&](const JsonValue& v) {
         for (const JsonValue& companion : v.elements())
           d.companions.push_back(decode_companion(companion));
       }},
      {"tied",
       [&](const JsonValue& v) {
         for (const JsonValue& group : v.elements()) d.tied.push_back(decode_texts(group, 2));
       }},
      {"store",
       [&](const JsonValue& v) {
         for (const JsonValue& rule : v.elements()) d.store.push_back(decode_store_rule(rule));
       }},
      {"read",
       [&](const JsonValue& v) {
         for (const JsonValue& rule : v.elements()) d.read.push_back(decode_read_rule(rule));
       }},
      {"unstored", [&](const JsonValue& v) { d.kept_names = decode_kept_names(v); }},
      {"drop", [&](const JsonValue& v) { last.drop = v; }},
      {"straddle", [&](const JsonValue& v) { d.straddle = decode_straddle(v); }},
      {"reduced_bias", [&](const JsonValue& v) { d.reduced_bias = decode_reduced_bias(v); }},
      {"default",
       [&](const JsonValue& v) {
         d.replicates_unknown_axes = v.one_of<bool>({{"replicate", true}, {"error", false}});
       }},
      {"unknown", [&](const JsonValue& v) { d.unknown = decode_unknown(v); }},
      {"unused_rule", [&](const JsonValue& v) { d.unused_rule = decode_unused(v); }},
  };
}

}  // namespace

Pattern pattern_of(const Glob& glob) {
  const bool any = glob.takes_any_number();
  return {glob.text(), glob.regex(), any ? NumberUse::kAnyAlike : NumberUse::kRead};
}

std::string line_of(const Place& place) {
  return place.line > 0 ? fmt::format("{}:{}", place.file, place.line) : place.file;
}

std::string describe(const Place& place) {
  std::string text = line_of(place);
  if (place.line > 0) text += fmt::format(":{}", place.column);
  if (!place.pointer.empty()) text += " " + place.pointer;
  return text;
}

std::string_view to_string(CompanionKind kind) {
  switch (kind) {
    case CompanionKind::kBlockScale:
      return "block_scale";
    case CompanionKind::kPerRow:
      return "per_row";
    case CompanionKind::kPerColumn:
      return "per_column";
    case CompanionKind::kPerTensor:
      return "per_tensor";
    case CompanionKind::kSameDims:
      return "same_dims";
    case CompanionKind::kMember:
      return "member";
  }
  throw Error(ErrorCode::kInternal, "unknown kind of companion");
}

std::vector<std::string> decode_texts(const JsonValue& value, size_t at_least) {
  std::vector<std::string> texts;
  for (const JsonValue& text : value.elements(at_least)) texts.push_back(text.nonempty_text());
  return texts;
}

Document decode_document(std::string_view text, const std::string& name, bool has_lines) {
  const JsonDocument json =
      parse_strict_json(text, name, ErrorCode::kMappingSyntax, kMaxDocumentDepth);
  const PlaceIndex places(has_lines ? text : "{}", name);
  Document document;
  document.name = name;
  document.is_preset = name.starts_with("preset:") || name.starts_with("layout:");
  ReadLast last;
  JsonValue(json.value, "", places).document(document_fields(document, last));
  decode_all_rules(last, document);
  return document;
}

DocumentHead decode_head(std::string_view text, const std::string& name) {
  const auto json = nlohmann::json::parse(text);
  const PlaceIndex no_places("{}", name);
  DocumentHead head;
  for (const auto& [key, value] : JsonValue(json, "", no_places).members()) {
    if (key == "description") head.description = value.text();
    if (key == "when") head.when = decode_when(value);
    if (key == "quantization") head.quantization = decode_texts(value, 1);
  }
  return head;
}

}  // namespace shardtool::mapping
