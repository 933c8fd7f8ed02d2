#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/embedded_schemas.h"
#include "cli/format_page.h"
#include "lib/api/catalogue/presets.h"
#include "lib/api/planning/op_policy.h"
#include "lib/base/error.h"
#include "lib/model/graph/graph_list.h"
#include "lib/ops/decoder.h"
#include "lib/ops/op_table.h"
#include "lib/plan/collective/hardware_profile.h"
#include "tests/support/temp_folder.h"

namespace shardtool::cli {
namespace {

using nlohmann::json;
using Keys = std::set<std::string>;

json schema_of(std::string_view file) {
  const auto all = embedded_schemas();
  const auto found = std::ranges::find(all, file, &EmbeddedSchema::name);
  REQUIRE(found != all.end());
  return json::parse(found->text);
}

/// Table of documents of one kind, each a change of a base document, with the verdicts of the
/// decoder ("accept") and of the schema ("schema", if that is another one).
json verdicts_of(const std::string& file) {
  std::ifstream text(SHARDTOOL_VERDICTS "/" + file + ".json");
  json table = json::parse(text);
  for (json& row : table["rows"]) {
    json document = table["base"];
    if (row.contains("op")) document["end"].insert(document["end"].begin(), row["op"]);
    if (row.contains("with")) document.merge_patch(row["with"]);
    row["document"] = std::move(document);
  }
  return table["rows"];
}

void check_verdicts(const std::string& file, const std::function<void(const std::string&)>& read) {
  for (const json& row : verdicts_of(file)) {
    std::string error;
    try {
      read(row["document"].dump());
    } catch (const Error& e) {
      error = e.message();
      CHECK(e.exit_status() == 3);
    }
    CAPTURE(error);
    CHECK_MESSAGE(error.empty() == row["accept"].get<bool>(), file << ": " << row["what"]);
  }
}

TEST_CASE("decoders of graphs, profiles and policies give the verdicts that schemas are held to") {
  check_verdicts("graph", [](const std::string& text) { model::decode_own_graph(text, "g.json"); });
  check_verdicts("profile", [](const std::string& text) { plan::decode_profile(text, "p.json"); });
  const test::TempFolder folder;
  check_verdicts("policy", [&folder](const std::string& text) {
    api::read_policies(folder.write("policy.json", text));
  });
}

/// Returns the keys that the decoder names as known, when it meets an unknown key in the op; none
/// if it meets another error.
Keys known_keys(const json& op) {
  const std::string text = op.dump();
  const mapping::PlaceIndex places(text, "op");
  Keys keys;
  try {
    ops::decode_op({op, "", places}, {});
  } catch (const Error& e) {
    for (const auto& [label, known] : e.notes()) {
      for (size_t at = 0; label == "known keys" && at < known.size();) {
        const size_t end = std::min(known.find(", ", at), known.size());
        keys.insert(known.substr(at, end - at));
        at = end + 2;
      }
    }
  }
  return keys;
}

/// Adds the keys of every object inside of the object at `at`, which an unknown key is put into.
void add_objects(json op, const json::json_pointer& at, std::set<Keys>& found) {
  const json unknown = {{"", 0}};
  op[at].update(unknown);
  const Keys keys = known_keys(op);
  if (keys.empty() || !found.insert(keys).second) return;
  op[at].erase("");
  for (const std::string& key : keys) {
    if (op[at].contains(key)) continue;
    json with = op;
    with[at][key] = json::object();
    add_objects(with, at / key, found);
    with[at][key] = {json::object(), unknown};  // the longest list that a decoder asks for
    add_objects(with, at / key / 0, found);
  }
}

/// Returns the keys of every object in the op with this name, those of the op itself first.
std::vector<Keys> objects_of(std::string_view name) {
  const json op = {{"op", name}};
  std::set<Keys> found;
  add_objects(op, json::json_pointer(), found);
  json with_unknown = op;
  with_unknown[""] = 0;
  const Keys own = known_keys(with_unknown);
  std::vector<Keys> objects{own};
  std::ranges::copy_if(found, std::back_inserter(objects),
                       [&own](const Keys& keys) { return keys != own; });
  return objects;
}

Keys keys_of(const json& properties) {
  Keys keys;
  for (const auto& [key, value] : properties.items()) keys.insert(key);
  return keys;
}

/// Adds the keys of every object in a schema.
void add_properties(const json& schema, std::set<Keys>& found) {
  if (schema.is_object() && schema.contains("properties"))
    found.insert(keys_of(schema["properties"]));
  if (!schema.is_structured()) return;
  for (const auto& [key, value] : schema.items()) add_properties(value, found);
}

std::string page(std::string_view name) {
  const auto pages = format_pages();
  const auto found = std::ranges::find(pages, name, &FormatPage::name);
  REQUIRE(found != pages.end());
  return std::string(found->scdoc);
}

/// Returns the entries of a page that have this term: "*linear*, *logits*".
std::string entries(const std::string& page, std::string_view term) {
  std::string text;
  for (size_t begin = 0; begin < page.size();) {
    const size_t end = std::min(page.find("\n\n", begin), page.size());
    const std::string entry = page.substr(begin, end - begin);
    if (entry.substr(0, entry.find('\n')).find(fmt::format("*{}*", term)) != entry.npos) {
      text += entry + "\n";
    }
    begin = end + 2;
  }
  return text;
}

TEST_CASE("the schema of graphs has the keys that ops read") {
  const json schema = schema_of("graph");
  std::set<Keys> in_schema;
  add_properties(schema, in_schema);
  Keys names;
  for (const ops::OpKind& kind : ops::op_table()) {
    const std::string name(kind.name);
    CAPTURE(name);
    names.insert(name);
    const std::vector<Keys> objects = objects_of(name);
    CHECK(objects.front() == keys_of(schema["definitions"][name]["properties"]));
    for (const Keys& keys : objects) {
      CHECK_MESSAGE(in_schema.contains(keys), fmt::format("{}", fmt::join(keys, ", ")));
    }
  }
  const json& listed = schema["definitions"]["op"]["properties"]["op"]["enum"];
  CHECK(names == listed.get<Keys>());
  CHECK(listed.size() == schema["definitions"]["op"]["allOf"].size());
}

TEST_CASE("the page on graphs names the keys that ops read") {
  const std::string graph = page("graph");
  const std::string both = graph + page("mapping");  // which has sets of layers
  for (const ops::OpKind& kind : ops::op_table()) {
    const std::vector<Keys> objects = objects_of(kind.name);
    const std::string of_op = entries(graph, kind.name);
    CHECK_MESSAGE(!of_op.empty(), kind.name);
    for (const std::string& key : objects.front()) {
      if (key == "op" || key == "in" || key == "out") continue;
      CHECK_MESSAGE(of_op.find(fmt::format("*{}*", key)) != of_op.npos, kind.name << ": " << key);
    }
    for (const Keys& keys : objects) {
      for (const std::string& key : keys) {
        const bool is_named = both.find(fmt::format("*{}*", key)) != both.npos ||
                              both.find(fmt::format("\"{}\"", key)) != both.npos;
        CHECK_MESSAGE(is_named, kind.name << ": " << key);
      }
    }
  }
}

TEST_CASE("objects inside of ops are found at any depth") {
  const auto finds = [](std::string_view op, const Keys& keys) {
    const std::vector<Keys> objects = objects_of(op);
    return std::ranges::find(objects, keys) != objects.end();
  };
  CHECK(finds("experts", {"name", "shape", "kernel"}));
  CHECK(finds("attention", {"config", "default", "when", "times"}));
  CHECK(finds("rope", {"order", "count", "has_class"}));
  CHECK_FALSE(finds("linear", {"order", "count", "has_class"}));
}

TEST_CASE("the schema of graphs describes what it shares with mappings in the same way") {
  const json mapping = json::parse(api::mapping_schema())["definitions"];
  const json graph = schema_of("graph")["definitions"];
  json sets = graph["layerSet"];
  sets["description"] = mapping["layerSet"]["description"];
  std::string text = mapping["layerSet"].dump();
  const std::pair<std::string_view, std::string_view> kSameNames[] = {
      {"definitions/ident", "definitions/text"},
      {"definitions/names", "definitions/paths"},
      {"definitions/configNumber", "definitions/number"}};
  for (const auto& [of_mapping, of_graph] : kSameNames) {
    for (size_t at = text.find(of_mapping); at != text.npos; at = text.find(of_mapping, at)) {
      text.replace(at, of_mapping.size(), of_graph);
    }
  }
  CHECK(sets == json::parse(text));
  CHECK(graph["sizeText"] == mapping["sizeText"]);
  CHECK(graph["size"]["pattern"] == mapping["dim"]["pattern"]);
}

}  // namespace
}  // namespace shardtool::cli
