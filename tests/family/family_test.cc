#include "lib/family/family.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/family/documents.h"
#include "lib/family/family_file.h"
#include "lib/family/json_layout.h"
#include "lib/family/name_pattern.h"
#include "lib/family/tensor_rows.h"

namespace shardtool::family {
namespace {

using Names = std::vector<std::string>;

/// Calls `visit(op)` for every op in `value`.
template <class Visit>
void for_each_op(const Json& value, const Visit& visit) {
  if (!value.is_structured()) return;
  if (value.is_object() && value.contains("op")) return visit(value);
  for (const Json& entry : value) for_each_op(entry, visit);
}

TEST_CASE("alternatives and placeholders of a name pattern") {
  CHECK(alternatives("norm.weight") == Names{"norm.weight"});
  CHECK(alternatives("{model.,}norm") == Names{"model.norm", "norm"});
  CHECK(alternatives("a{b,c}{d,e}") == Names{"abd", "abe", "acd", "ace"});
  CHECK(alternatives("a{b") == Names{"a{b"});
  CHECK(placeholders("layers.<layer>.experts.<expert>.w") == Names{"layer", "expert"});
  CHECK(placeholders("norm.weight").empty());
}

TEST_CASE("families are sorted, and what they extend exists and has that half") {
  const auto all = families();
  REQUIRE(all.size() > 100);
  CHECK(std::ranges::is_sorted(all, {}, &Family::name));
  for (const Family& family : all) {
    CAPTURE(family.name);
    CHECK((family.when.has_value() || family.has_ops));
    CHECK(family_file(family.name).at("family") == family.name);
    for (const std::string& name : family.extends_tensors) {
      if (family.when) CHECK((find_family(name) != nullptr && find_family(name)->when));
    }
    for (const std::string& name : family.extends_ops) {
      if (family.has_ops) CHECK((find_family(name) != nullptr && find_family(name)->has_ops));
    }
  }
  CHECK(find_family("no such family") == nullptr);
}

TEST_CASE("a family's file has no key that no document reads") {
  const std::set<std::string> known = {
      "version",     "family",   "description", "computes",   "source",       "extends",   "when",
      "model_types", "prefix",   "sizes",       "cuts",       "tensors",      "numbers",   "parts",
      "start",       "blocks",   "end",         "stacks",     "tower",        "overrides", "passed",
      "ignored",     "requires", "config_part", "layer_sets", "layer_numbers"};
  for (const Family& family : families()) {
    for (const auto& [key, value] : family_file(family.name).items()) {
      CAPTURE(family.name);
      CAPTURE(key);
      CHECK(known.contains(key));
    }
  }
}

/// Lists the keys of ops that repeat the dims of their weight's row.
std::string repeated_dims(std::string_view name) {
  const TensorRows rows(name);
  std::string repeated;
  for_each_op(family_file(name), [&](const Json& op) {
    const auto compare = [&](const char* weight, Names keys) {
      if (!op.contains(weight) || !op.at(weight).is_string()) return;
      const Json* dims = rows.dims(op.at(weight).get<std::string>());
      if (dims == nullptr || dims->size() < keys.size()) return;
      for (size_t i = 0; i < keys.size(); ++i) {
        if (op.contains(keys[i]) && op.at(keys[i]) == dims->at(i))
          repeated += fmt::format("{}: {} of {}\n", name, keys[i], op.at(weight).dump());
      }
    };
    if (op.at("op") == "linear" || op.at("op") == "logits") compare("weight", {"rows", "columns"});
    if (op.at("op") == "embed") compare("table", {"rows", "size"});
    if (op.at("op") == "norm") compare("weight", {"size"});
    if (op.at("op") == "router") compare("weight", {"experts", "columns"});
  });
  return repeated;
}

TEST_CASE("an op does not repeat the dims of its weight's tensor") {
  std::string repeated;
  for (const Family& family : families()) repeated += repeated_dims(family.name);
  CHECK(repeated == "");
}

TEST_CASE("a family's file is laid out as its documents are") {
  for (const Family& family : families()) {
    CAPTURE(family.name);
    CHECK(std::string(family.text) == laid_out(family_file(family.name)));
  }
}

TEST_CASE("documents spell prefixes, dims and biases out") {
  const Json mapping = Json::parse(mapping_document("llama"));
  const Json q = mapping.at("rules").at(2);
  CHECK(q.at("id") == "q");
  CHECK(q.at("match") ==
        "{,language_model.}{model.,}{,language_model.}layers.<layer>.self_attn.q_proj.weight");
  CHECK(q.at("index") == Json{{"layer", "layers"}});
  CHECK(mapping.at("axes").at("heads").at("size") == "config.num_attention_heads");

  const Json graph = Json::parse(graph_document("llama"));
  Json linear;
  for_each_op(graph, [&](const Json& op) {
    if (op.at("out") == "q" && op.at("op") == "linear") linear = op;
  });
  CHECK(linear.at("rows") == "heads*head_dim");
  CHECK(linear.at("columns") == "embed");
  CHECK(linear.at("bias") == "layer/self_attn.q_proj.bias?");
}

TEST_CASE("the dims of a weight are those of the nearest row that covers all its names") {
  const TensorRows rows("llama");
  REQUIRE(rows.dims("layer/self_attn.k_proj.weight") != nullptr);
  CHECK(*rows.dims("layer/self_attn.k_proj.weight") == Json{"kv_heads*head_dim", "embed"});
  CHECK(*rows.dims("layer/self_attn.k_proj.bias?") == Json{"kv_heads*head_dim"});
  CHECK(*rows.dims("layer/mlp.{gate,up}_proj.weight") == Json{"mlp", "embed"});
  CHECK(rows.dims("layer/self_attn.{q,k}_proj.weight") == nullptr);
  CHECK(rows.dims("layer/no.such.weight") == nullptr);
  // Rows of layers' norms have the prefix layer/, and the last norm has another name.
  CHECK(rows.dims("root/input_layernorm.weight") == nullptr);
}

}  // namespace
}  // namespace shardtool::family
