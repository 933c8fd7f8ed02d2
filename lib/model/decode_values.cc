#include "shardtool/model/decode_values.h"

namespace shardtool::model {

using mapping::JsonValue;

Dim decode_dim(const JsonValue& value) {
  return value.located([&] { return mapping::parse_dim(value.text()); });
}

std::vector<Dim> decode_dims(const JsonValue& value) {
  std::vector<Dim> dims;
  for (const JsonValue& dim : value.elements(1)) dims.push_back(decode_dim(dim));
  return dims;
}

std::vector<std::string> decode_paths(const JsonValue& value) {
  if (value.is_text()) return {value.nonempty_text()};
  std::vector<std::string> paths;
  for (const JsonValue& path : value.elements(1)) paths.push_back(path.nonempty_text());
  return paths;
}

Word decode_word(const JsonValue& value) {
  if (value.is_text()) return {"", value.text()};
  Word word;
  value.object({{"config", [&](const JsonValue& v) { word.config = v.nonempty_text(); }, true},
                {"default", [&](const JsonValue& v) { word.value = v.text(); }, true}});
  return word;
}

Number decode_number(const JsonValue& value, const std::map<std::string, Number>& named) {
  if (value.is_number()) return {{}, value.number()};
  if (value.is_text()) {
    const auto found = named.find(value.text());
    if (found == named.end()) value.refuse("a number or the name of one of the \"numbers\"");
    return found->second;
  }
  Number number;
  const auto condition = [&number](const JsonValue& v) {
    Condition& when = number.when.emplace();
    v.object({{"config", [&](const JsonValue& path) { when.config = path.nonempty_text(); }, true},
              {"is", [&](const JsonValue& word) { when.is = word.nonempty_text(); }, true}});
  };
  value.object(
      {{"config", [&number](const JsonValue& v) { number.config = decode_paths(v); }, true},
       {"default", [&](const JsonValue& v) { number.value = v.number(); }, true},
       {"when", condition}});
  return number;
}

std::vector<std::string> decode_allowed(const JsonValue& value) {
  std::vector<std::string> allowed;
  for (const JsonValue& one : value.elements(1)) {
    allowed.push_back(one.is_number() ? allowed_number(one.number()) : one.scalar());
  }
  return allowed;
}

Requirements decode_requirements(const JsonValue& value) {
  Requirements requirements;
  for (const auto& [path, allowed] : value.members()) {
    requirements.emplace_back(path, decode_allowed(allowed));
  }
  return requirements;
}

LayerSet decode_layer_set(const JsonValue& value, const LayerSets& named,
                          const std::map<std::string, Number>& numbers) {
  if (value.is_text()) {
    const auto found = named.find(value.text());
    if (found == named.end()) value.refuse("the name of one of the \"layer_sets\"");
    return found->second;
  }
  LayerSet set;
  value.object({{"list", [&](const JsonValue& v) { set.list = v.nonempty_text(); }, true},
                {"in", [&](const JsonValue& v) { set.in = decode_allowed(v); }, true},
                {"out", [&](const JsonValue& v) { set.out = decode_allowed(v); }, true},
                {"all_but_every",
                 [&](const JsonValue& v) { set.all_but_every = decode_number(v, numbers); }}});
  return set;
}

}  // namespace shardtool::model
