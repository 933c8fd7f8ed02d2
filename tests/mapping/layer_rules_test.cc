#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include "lib/mapping/resolve/resolve.h"
#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

constexpr const char* kLocal =
    R"({"list": ["text.layer_types", "layer_types"], "in": ["local"], "out": ["global"], "all_but_every": {"config": "pattern", "default": 3}})";

/// Cuts rows of heads of 2 in the local layers, of 3 in the others.
std::string layered(const std::string& more = "") {
  return fmt::format(
      R"({{"version": 1, "unused_rule": "ignore",
           "axes": {{"heads": {{"mesh": "tp", "size": 4}}}},
           "layer_sets": {{"local": {}}},
           "rules": [
  {{"id": "q_local", "match": "l.<n>.q", "dims": ["heads*2", null], "where": {{"n": "local"}}}},
  {{"id": "q_global", "match": "l.<n>.q", "dims": ["heads*3", null], "where": {{"n": {{"not": "local"}}}}}}{}]}})",
      kLocal, more);
}

std::vector<TensorSpec> layers(const std::vector<bool>& local) {
  std::vector<TensorSpec> tensors;
  for (size_t n = 0; n < local.size(); ++n)
    tensors.push_back(spec(fmt::format("l.{}.q", n), {local[n] ? 8 : 12, 5}));
  return tensors;
}

std::string types(const std::vector<bool>& local) {
  std::vector<std::string> words;
  for (const bool is_local : local) words.push_back(is_local ? R"("local")" : R"("global")");
  return fmt::format("[{}]", fmt::join(words, ", "));
}

bool says(const Error& e, const std::string& text) {
  std::string all = e.what();
  for (const auto& [label, note] : e.notes()) all += "\n" + note;
  return all.find(text) != std::string::npos;
}

std::vector<std::string> rules_of(const Resolution& resolution) {
  std::vector<std::string> rules;
  for (const ResolvedTensor& tensor : resolution.tensors) rules.push_back(tensor.by->rule);
  return rules;
}

std::vector<std::string> rules_with(const std::string& config, const std::vector<bool>& local) {
  const ModelConfig read = config_of(config);
  return rules_of(resolve(mapping_of(layered()), layers(local), &read, over("tp=2")));
}

/// Marks the first layers that are in the set: "-x-x-".
std::string layers_in(const LayerSet& set, const std::string& config_text, i64 layers) {
  const auto config = parse_config(config_text, "config.json");
  std::string found;
  for (i64 layer = 0; layer < layers; ++layer) found += contains(set, config, layer) ? 'x' : '-';
  return found;
}

TEST_CASE("a set of layers may be those whose numbers a list has, or as many as it has entries") {
  for (const bool is_rest : {false, true}) {
    const LayerSet numbered{LayerSet::Numbered{"some"}, is_rest};
    const LayerSet first{LayerSet::AsManyAs{"some"}, is_rest};
    const std::string none = is_rest ? "xxxxx" : "-----";
    CHECK(layers_in(numbered, R"({"some": [3, 1, 9]})", 5) == (is_rest ? "x-x-x" : "-x-x-"));
    CHECK(layers_in(first, R"({"some": [3, 1, 9]})", 5) == (is_rest ? "---xx" : "xxx--"));
    for (const LayerSet& set : {numbered, first}) {
      CHECK(layers_in(set, "{}", 5) == none);
      CHECK(layers_in(set, R"({"some": null})", 5) == none);
      CHECK_ERROR(kConfig, layers_in(set, R"({"some": 3})", 1));
      CHECK_ERROR(kConfig, layers_in(set, R"({"some": {}})", 1));
    }
  }
  const LayerSet behind{LayerSet::From{"layers"}};
  CHECK(layers_in(behind, R"({"layers": 3})", 5) == "---xx");
  CHECK_ERROR(kConfig, layers_in(behind, R"({"layers": "3"})", 1));
  CHECK_ERROR(kConfig, layers_in(behind, "{}", 1));
  const LayerSet from_one{LayerSet::Numbered{"some", 1}};
  CHECK(layers_in(from_one, R"({"some": [3, 1, 9]})", 5) == "x-x--");
  CHECK(to_string(LayerSet{LayerSet::Numbered{"some"}}) == "\"some\" has its number");
  CHECK(to_string(LayerSet{LayerSet::AsManyAs{"some"}, true}) ==
        "it is after as many as \"some\" has");
}

TEST_CASE("a set of layers is that of a list, else all but every n-th, and an empty list is none") {
  LayerSet set;
  auto& listed = std::get<LayerSet::Listed>(set.kind);
  listed.lists = {"kinds"}, listed.in = {"1"}, listed.out = {"0"};
  const auto in = [&set](const std::string& text, i64 n = 5) { return layers_in(set, text, n); };
  CHECK(in(R"({"kinds": [0, 1, 1, 0, 1]})") == "-xx-x");
  CHECK_ERROR(kConfig, in("{}"));
  CHECK_ERROR(kConfig, in(R"({"kinds": []})"));
  CHECK_ERROR(kUnsupported, in(R"({"kinds": [2]})", 1));
  CHECK_ERROR(kUnsupported, in(R"({"kinds": [1]})", 2));
  listed.all_but_every = Number{{"every"}, 4};
  CHECK(in("{}") == "xxx-x");
  CHECK(in(R"({"kinds": [], "every": 2})") == "x-x-x");
  CHECK(in(R"({"kinds": [0, 0, 0, 0, 0], "every": 2})") == "-----");
  CHECK_ERROR(kConfig, in(R"({"every": 0})"));
  listed.first = 0;
  CHECK(in(R"({"every": 3})") == "-xx-x");
  listed.first.reset();
  set.complement = true;
  CHECK(in(R"({"kinds": [0, 1, 1, 0, 1]})") == "x--x-");
  CHECK(in(R"({"every": 4})") == "---x-");
  CHECK_ERROR(kUnsupported, in(R"({"kinds": [2]})", 1));
  listed.out.clear();
  CHECK(in(R"({"kinds": [2, 1, 0.5, 0, 1]})") == "x-xx-");
  CHECK(to_string(set) == "\"kinds\" says nothing of 1");
}

TEST_CASE("where layers are counted from is said of those that are counted alone") {
  const auto rules = [](const std::string& set) {
    return mapping_of(fmt::format(
        R"({{"version": 1, "unused_rule": "ignore", "layer_sets": {{"local": {}}}, "rules": []}})",
        set));
  };
  const std::string list = R"({"list": "types", "in": ["local"], "first": 0)";
  CHECK_ERROR(kMappingSchema, rules(list + "}"));
  CHECK_ERROR(kMappingSchema, rules(list + R"(, "otherwise": {"numbers": "some"}})"));
  CHECK_NOTHROW(rules(list + R"(, "all_but_every": 3})"));
}

TEST_CASE("a set of layers is that of a list, else that of another one") {
  LayerSet set;
  auto& listed = std::get<LayerSet::Listed>(set.kind);
  listed.lists = {"kinds"}, listed.in = {"1"}, listed.out = {"0"};
  listed.otherwise = std::make_shared<const LayerSet>(LayerSet{LayerSet::Numbered{"some", 1}});
  const auto in = [&set](const std::string& text) { return layers_in(set, text, 4); };
  CHECK(in(R"({"kinds": [0, 1, 1, 0], "some": [1]})") == "-xx-");
  CHECK(in(R"({"some": [1, 4]})") == "x--x");
  CHECK(in("{}") == "----");
  set.complement = true;
  CHECK(in(R"({"some": [1, 4]})") == "-xx-");
}

TEST_CASE("a set of layers may be the last ones, and numbers of a config may count several times") {
  LayerSet set{LayerSet::Last{{{"shared"}, 0}, {{"layers"}, 4}}};
  const auto in = [&set](const std::string& text) { return layers_in(set, text, 4); };
  CHECK(in("{}") == "----");
  CHECK(in(R"({"shared": 1})") == "---x");
  CHECK(in(R"({"shared": 9})") == "xxxx");
  CHECK(in(R"({"shared": 1, "layers": 3})") == "--xx");
  set.complement = true;
  CHECK(in(R"({"shared": 3})") == "x---");
  const Number ratio{{"ratio"}, 7, {}, 10};
  CHECK(value_of(ratio, parse_config("{}", "config.json")) == 7);
  CHECK(value_of(ratio, parse_config(R"({"ratio": 0.5})", "config.json")) == 5);
}

TEST_CASE("a number of a layer is what a list says of it, or what the config says of all") {
  const Number number{{"angles", "angle"}, 7};
  const auto config = config_of(R"({"angles": [3, 0], "angle": 5})");
  CHECK(value_of(of_layer(number, 0), config) == 3);
  CHECK(value_of(of_layer(number, 1), config) == 0);
  CHECK(value_of(of_layer(number, 1), config_of(R"({"angle": 5})")) == 5);
  CHECK(value_of(of_layer(number, 1), config_of(R"({"angles": null})")) == 7);
  CHECK_ERROR(kConfig, static_cast<void>(value_of(of_layer(number, 2), config)));
}

TEST_CASE("rules of disjoint layers decide what globs of single layers decide") {
  CHECK(rc::check("disjoint layers", [](const std::vector<bool>& local) {
    const auto tensors = layers(local);
    const ModelConfig config = config_of(R"({"layer_types": )" + types(local) + "}");
    const Resolution by_set = resolve(mapping_of(layered()), tensors, &config, over("tp=2"));
    std::vector<std::string> rules;
    for (size_t n = 0; n < local.size(); ++n) {
      rules.push_back(
          fmt::format(R"({{"id": "r{0}", "match": "l.{0}.q", "dims": ["heads*{1}", null]}})", n,
                      local[n] ? 2 : 3));
    }
    const Resolution by_glob = resolve(
        mapping_of(fmt::format(
            R"({{"version": 1, "axes": {{"heads": {{"mesh": "tp", "size": 4}}}}, "rules": [{}]}})",
            fmt::join(rules, ", "))),
        tensors, nullptr, over("tp=2"));
    RC_ASSERT(by_set.tensors.size() == by_glob.tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      for (size_t a = 0; a < 2; ++a) {
        RC_ASSERT(to_string(by_set.tensors[i].layout->axes()[a].expr) ==
                  to_string(by_glob.tensors[i].layout->axes()[a].expr));
      }
      RC_ASSERT(by_set.tensors[i].by->rule == (local[i] ? "q_local" : "q_global"));
    }
  }));
}

TEST_CASE("a list of config.json says where a rule holds, or a period where there is none") {
  using Rules = std::vector<std::string>;
  const Rules first = {"q_global", "q_local"};
  CHECK(rules_with(R"({"layer_types": ["global", "local"]})", {false, true}) == first);
  CHECK(rules_with(R"({"text": {"layer_types": ["global", "local"]}, "layer_types": ["local"]})",
                   {false, true}) == first);
  CHECK(rules_with(R"({"pattern": 2})", {true, false}) == Rules{"q_local", "q_global"});
  CHECK(rules_with("{}", {true, true, false}) == Rules{"q_local", "q_local", "q_global"});
  CHECK(rules_with(R"({"layer_types": []})", {true, true, false}) ==
        Rules{"q_local", "q_local", "q_global"});
}

TEST_CASE("two rules that hold in one layer are ambiguous there, and only there") {
  const auto third = [](const std::string& where) {
    return layered(R"(, {"id": "also", "match": "l.*.q", "dims": [null, null]})" + where);
  };
  const ModelConfig config = config_of(R"({"layer_types": ["local", "global"]})");
  const auto tensors = layers({true, false});
  const auto both = error_of([&] {
    const std::string overlapping = layered(fmt::format(
        R"(, {{"id": "also", "match": "l.<k>.q", "strategy": "replicate", "where": {{"k": {}}}}})",
        kLocal));
    resolve(mapping_of(overlapping), tensors, &config, over("tp=2"));
  });
  CHECK(both->code() == ErrorCode::kAmbiguousRule);
  CHECK(says(*both, "'q_local' and 'also' both match 'l.0.q'"));
  CHECK_ERROR(kAmbiguousRule, resolve(mapping_of(third("")), tensors, &config, over("tp=2")));
}

TEST_CASE("where a nearer rule does not hold a farther one decides, and where none does nothing") {
  const std::string near = fmt::format(
      R"({{"version": 1, "rules": [{{"id": "near", "match": "l.<n>.q", "strategy": "replicate", "where": {{"n": {}}}}}]}})",
      kLocal);
  const std::string far =
      R"({"version": 1, "rules": [{"id": "far", "match": "l.*.q", "strategy": "replicate"}]})";
  const ModelConfig config = config_of(R"({"layer_types": ["local", "global"]})");
  const auto tensors = layers({true, false});
  CHECK(rules_of(resolve(Mapping({{"n.json", near}, {"f.json", far}}), tensors, &config,
                         over("tp=2"))) == std::vector<std::string>{"near", "f.json#far"});
  const auto unknown = error_of([&] { resolve(mapping_of(near), tensors, &config, over("tp=2")); });
  CHECK(unknown->code() == ErrorCode::kNoRule);
  CHECK(says(*unknown, "'l.1.q'"));
}

TEST_CASE("a rule whose layers the model does not have matches nothing, and says where it holds") {
  const std::string text = fmt::format(
      R"({{"version": 1, "rules": [{{"match": "**", "strategy": "replicate", "id": "all"}}],
           "overrides": [{{"id": "none", "match": "l.<n>.q", "strategy": "replicate", "where": {{"n": {}}}}}]}})",
      kLocal);
  const ModelConfig config = config_of(R"({"layer_types": ["global"]})");
  const auto unused =
      error_of([&] { resolve(mapping_of(text), layers({false}), &config, over("tp=2")); });
  CHECK(unused->code() == ErrorCode::kUnusedRule);
  CHECK(says(*unused, R"(<n> is a layer of which "layer_types" says "local")"));
}

TEST_CASE("a word of no kind, a list that ends too early and no config.json are errors") {
  const auto told = [](const char* config_text) {
    return error_of([&] {
      const Mapping mapping = mapping_of(layered());
      const ModelConfig config = config_of(config_text ? config_text : "{}");
      resolve(mapping, layers({true, false}), config_text ? &config : nullptr, over("tp=2"));
    });
  };
  const auto word = told(R"({"layer_types": ["local", "linear"]})");
  CHECK(word->code() == ErrorCode::kUnsupported);
  CHECK(says(*word, "'layer_types[1]' in config.json is not a known kind of layer"));
  CHECK(word->place()->line > 0);
  CHECK(told(R"({"layer_types": ["local"]})")->code() == ErrorCode::kUnsupported);
  CHECK(told(R"({"pattern": 0})")->code() == ErrorCode::kConfig);
  const auto none = told(nullptr);
  CHECK(none->code() == ErrorCode::kConfig);
  CHECK(says(*none, "rule 'q_local' holds in some layers only"));
}

TEST_CASE("a word that no tensor's rule needs is no error") {
  const ModelConfig config = config_of(R"({"layer_types": ["local", "linear"]})");
  const Resolution result = resolve(mapping_of(layered()), layers({true}), &config, over("tp=2"));
  CHECK(rules_of(result) == std::vector<std::string>{"q_local"});
  CHECK(why(result.tensors[0]).find(R"(, for layers of which "layer_types" says "local", cuts)") !=
        std::string::npos);
}

TEST_CASE("\"drop\" may leave out only some layers") {
  const std::string text = R"({"version": 1,
    "rules": [{"match": "l.<n>.q", "strategy": "replicate"}],
    "drop": [{"match": "l.<n>.*", "where": {"n": {"from": "depth"}}}]})";
  const auto tensors = layers({true, true, true});
  const ModelConfig config = config_of(R"({"depth": 2})");
  CHECK(resolve(mapping_of(text), tensors, &config, over("tp=2")).dropped ==
        std::vector<size_t>{2});
  const ModelConfig deeper = config_of(R"({"depth": 3})");
  CHECK(resolve(mapping_of(text), tensors, &deeper, over("tp=2")).dropped.empty());
  CHECK_ERROR(kConfig, resolve(mapping_of(text), tensors, nullptr, over("tp=2")));
  CHECK_ERROR(kUnknownName, mapping_of(R"({"version": 1,
    "drop": [{"match": "l.<n>.*", "where": {"m": {"from": "depth"}}}]})"));
}

TEST_CASE("a set may be the layers from a number on that is no size of config.json") {
  const std::string text = R"({"version": 1,
    "rules": [{"match": "l.<n>.q", "strategy": "replicate"}],
    "drop": [{"match": "l.<n>.*", "where": {"n": {"from": 1}}}]})";
  const ModelConfig config = config_of("{}");
  CHECK(resolve(mapping_of(text), layers({true, true, true}), &config, over("tp=2")).dropped ==
        std::vector<size_t>{1, 2});
}

}  // namespace
}  // namespace shardtool::mapping
