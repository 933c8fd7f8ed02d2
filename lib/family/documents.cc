#include "lib/family/documents.h"

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>

#include "lib/family/family.h"
#include "lib/family/family_file.h"
#include "lib/family/json_layout.h"
#include "lib/family/name_pattern.h"
#include "lib/family/tensor_rows.h"

namespace shardtool::family {
namespace {

/// "layer_sets" may be one table for tensors and ops, or {"tensors": table, "ops": table}.
const Json* half_of(const Json& file, const char* key, const char* half) {
  const auto found = file.find(key);
  if (found == file.end()) return nullptr;
  const bool is_split = std::ranges::all_of(found->items(), [](const auto& entry) {
    return entry.key() == "tensors" || entry.key() == "ops";
  });
  if (!is_split) return &*found;
  const auto part = found->find(half);
  return part == found->end() ? nullptr : &*part;
}

/// The cuts, with the formula of "sizes" where a cut says "size": true.
Json axes_of(const Json& file) {
  Json axes = file.at("cuts");
  for (auto& [axis, cut] : axes.items()) {
    if (!cut.is_object()) continue;
    if (const auto size = cut.find("size"); size != cut.end() && *size == true)
      *size = file.at("sizes").at(axis);
  }
  return axes;
}

/// <layer> counts the axis "layers", <expert> "experts".
Json default_index(const std::string& match) {
  Json index = Json::object();
  for (const std::string& name : placeholders(match)) index[name] = name + "s";
  return index;
}

Json rule_of(const std::string& id, const Json& tensor, const Prefixes& prefixes) {
  Json match = tensor.at("name");
  if (match.is_string()) {
    match = full_name(match.get<std::string>(), prefixes);
  } else {
    for (Json& name : match) name = full_name(name.get<std::string>(), prefixes);
  }
  Json rule = {{"id", id}, {"match", match}};
  for (const char* key : {"dims", "strategy"}) {
    if (tensor.contains(key)) rule[key] = tensor.at(key);
  }
  const Json index =
      tensor.contains("index") ? tensor.at("index") : default_index(texts_of(match).front());
  if (!index.empty()) rule["index"] = index;
  for (const auto& [key, value] : tensor.items()) {
    if (key != "name" && key != "index" && !rule.contains(key)) rule[key] = value;
  }
  return rule;
}

/// The layer sets that a rule names in "where".
Json used_layer_sets(const Json& sets, const Json& rules) {
  std::string conditions;
  for (const Json& rule : rules) {
    if (rule.contains("where")) conditions += rule.at("where").dump();
  }
  Json used = Json::object();
  for (const auto& [name, set] : sets.items()) {
    if (conditions.find("\"" + name + "\"") != conditions.npos) used[name] = set;
  }
  return used;
}

Json make_mapping(std::string_view name) {
  const Json& file = family_file(name);
  const Family& family = *find_family(name);
  Json document = {{"version", 1}, {"name", name}, {"description", family.description}};
  for (const std::string& extended : family.extends_tensors)
    document["extends"].push_back("preset:" + extended);
  document["when"] = file.at("when");
  if (file.contains("cuts")) document["axes"] = axes_of(file);
  if (file.contains("tensors")) {
    const Prefixes prefixes = prefixes_of(name);
    Json rules = Json::array();
    for (const auto& [id, tensor] : file.at("tensors").items())
      rules.push_back(rule_of(id, tensor, prefixes));
    if (const Json* sets = half_of(file, "layer_sets", "tensors")) {
      Json used = used_layer_sets(*sets, rules);
      if (!used.empty()) document["layer_sets"] = std::move(used);
    }
    document["rules"] = std::move(rules);
  }
  if (file.contains("overrides")) document["overrides"] = file.at("overrides");
  document["unused_rule"] = "ignore";
  return document;
}

/// The keys of an op that are the dims of its weight.
struct WeightDims {
  std::string_view op;
  const char* weight;
  std::array<const char*, 2> keys;  ///< of the first dims; nullptr: it has fewer
};
constexpr auto kWeightDims = std::to_array<WeightDims>({
    {"linear", "weight", {"rows", "columns"}},
    {"embed", "table", {"rows", "size"}},
    {"logits", "weight", {"rows", "columns"}},
    {"router", "weight", {"experts", "columns"}},
    {"norm", "weight", {"size", nullptr}},
});

/// The keys that the op does not give and its weight's row does, with the dims.
Json missing_dims(const Json& op, const TensorRows& tensors) {
  Json missing = Json::object();
  const auto found =
      std::ranges::find(kWeightDims, op.at("op").get<std::string>(), &WeightDims::op);
  if (found == kWeightDims.end() || !op.contains(found->weight)) return missing;
  const Json* dims = nullptr;
  for (const std::string& weight : texts_of(op.at(found->weight))) {
    if (dims == nullptr) dims = tensors.dims(weight);
  }
  const size_t count = found->keys[1] == nullptr ? 1 : 2;
  if (dims == nullptr || dims->size() < count) return missing;
  for (size_t i = 0; i < count; ++i) {
    const Json& dim = dims->at(i);
    if (!dim.is_null() && !op.contains(found->keys[i])) missing[found->keys[i]] = dim;
  }
  return missing;
}

/// "bias": true and "optional" name the weight's ".bias".
Json bias_of(const Json& op) {
  const Json& bias = op.at("bias");
  constexpr std::string_view kWeight = "weight";
  if (bias != true && bias != "optional") return bias;
  std::string name = op.at("weight").get<std::string>();
  name.replace(name.size() - kWeight.size(), kWeight.size(), "bias");
  return bias == true ? name : name + "?";
}

Json complete_op(const Json& op, const TensorRows& tensors) {
  const Json missing = missing_dims(op, tensors);
  Json complete = Json::object();
  std::string last_operand;
  for (const auto& [key, value] : op.items()) {
    if (key == "weight" || key == "table" || key.starts_with("bias")) last_operand = key;
  }
  for (const auto& [key, value] : op.items()) {
    complete[key] = key == "bias" ? bias_of(op) : value;
    if (key == last_operand) complete.update(missing);
  }
  return complete;
}

/// Completes every op in `value`.
Json complete_ops(const Json& value, const TensorRows& tensors) {
  if (!value.is_structured()) return value;
  if (value.is_object() && value.contains("op")) return complete_op(value, tensors);
  Json complete = value;
  for (Json& entry : complete) entry = complete_ops(entry, tensors);
  return complete;
}

Json make_graph(std::string_view name) {
  const Json& file = family_file(name);
  const Family& family = *find_family(name);
  Json document = {{"version", 1}, {"family", name}};
  if (family.extends_ops.size() == 1) {
    document["extends"] = family.extends_ops.front();
  } else if (!family.extends_ops.empty()) {
    document["extends"] = family.extends_ops;
  }
  document["description"] = family.computes.empty() ? family.description : family.computes;
  document["source"] = file.at("source");
  document["model_types"] = family.op_model_types;
  const TensorRows tensors(name);
  for (const char* key :
       {"config_part", "requires", "prefix", "passed", "sizes", "numbers", "layer_sets",
        "layer_numbers", "parts", "stacks", "start", "blocks", "end", "ignored", "tower"}) {
    const Json* value = half_of(file, key, "ops");
    if (value != nullptr) document[key] = complete_ops(*value, tensors);
  }
  return document;
}

/// The text that `make` lays out, made once per family.
const std::string& made_once(std::string_view name,
                             std::map<std::string, std::string, std::less<>>& made,
                             Json (*make)(std::string_view)) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto known = made.find(name);
  if (known != made.end()) return known->second;
  return made.emplace(std::string(name), laid_out(make(name))).first->second;
}

}  // namespace

const std::string& mapping_document(std::string_view family) {
  static std::map<std::string, std::string, std::less<>> made;
  return made_once(family, made, make_mapping);
}

const std::string& graph_document(std::string_view family) {
  static std::map<std::string, std::string, std::less<>> made;
  return made_once(family, made, make_graph);
}

}  // namespace shardtool::family
