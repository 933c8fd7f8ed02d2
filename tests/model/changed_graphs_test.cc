#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/price.h"
#include "tests/model/published.h"
#include "tests/presets/fixture.h"
#include "tests/support/throws.h"

using namespace shardtool;
using nlohmann::json;

namespace {

/// Collects all values of a document below its root.
void collect(json& value, std::vector<json*>& all) {
  all.push_back(&value);
  if (!value.is_structured()) return;
  for (json& member : value) collect(member, all);
}

std::vector<json*> values_of(json& document) {
  std::vector<json*> all;
  for (const char* key : {"sizes", "numbers", "layer_sets", "parts", "start", "blocks", "stacks",
                          "end", "passed", "requires"}) {
    if (document.contains(key)) collect(document[key], all);
  }
  return all;
}

class Changes {
 public:
  explicit Changes(unsigned seed) : random_(seed) {}

  /// Applies a random change, as from a typo or hostile input.
  void change(json& document) {
    const std::vector<json*> all = values_of(document);
    json& value = *all[below(all.size())];
    const json other = *all[below(all.size())];
    if (value.is_object() && !value.empty() && below(3) > 0) {
      value.erase(std::next(value.begin(), static_cast<std::ptrdiff_t>(below(value.size()))));
    } else if (value.is_array() && !value.empty() && below(3) > 0) {
      const size_t at = below(value.size());
      below(2) == 0 ? value.erase(at) : value.push_back(json(value[at]));
    } else if (value.is_string() && below(2) == 0) {
      static const std::vector<std::string> kWords{"embed", "heads", "x",  "q",     "0",
                                                   "3",     "vocab", "no", "999999"};
      value = kWords[below(kWords.size())];
    } else if (value.is_number()) {
      static const std::vector<double> kNumbers{0, -1, 0.5, 3, 1e300, -1e-300};
      value = kNumbers[below(kNumbers.size())];
    } else {
      value = other;
    }
  }
  size_t below(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random_);
  }

 private:
  std::mt19937 random_;
};

/// Prices the fixture's model with the document's graph; returns true if it has a price.
bool has_price(const json& document, const mapping::Fixture& f) {
  const auto graph = std::make_shared<const model::Graph>(
      model::decode_own_graph(document.dump(1), "changed.json"));
  const auto bound = model::bind_model(graph, f.config, f.tensors);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh("tp=2");
  const auto resolution = resolve(mapping::load_preset(f.preset), f.tensors, &f.config, options);
  model::price(bound, f.tensors, model::weights_of(resolution, f.tensors.size()), resolution.mesh,
               {}, nullptr);
  return true;
}

}  // namespace

// A rejection must be an Error: any other exception, or a crash, ends the test.
TEST_CASE("a graph that was changed anywhere is refused or has a price") {
  constexpr unsigned kChangesOfEach = 60;
  int refused = 0;
  int priced = 0;
  for (const char* name : {"llama", "qwen2_moe", "bamba", "deepseek_v3", "t5", "gemma3", "gpt_oss",
                           "mimo_v2_flash", "olmo_hybrid", "glm_moe_dsa"}) {
    const mapping::Fixture& f = mapping::fixture(name);
    for (unsigned seed = 0; seed < kChangesOfEach; ++seed) {
      CAPTURE(name);
      CAPTURE(seed);
      json document = json::parse(model::graph_text(name));
      Changes changes(seed);
      const size_t count = 1 + changes.below(2);
      for (size_t i = 0; i < count; ++i) changes.change(document);
      try {
        priced += has_price(document, f) ? 1 : 0;
      } catch (const Error& error) {
        ++refused;
        CHECK_MESSAGE(error.code() != ErrorCode::kInternal, error.message());
      }
    }
  }
  CHECK(refused > 100);
  CHECK(priced > 50);
}

TEST_CASE("an op that reads a value of another width is told, with its place") {
  json document = json::parse(model::graph_text("llama"));
  document["parts"]["mlp"][4]["in"] = "m";
  const auto error =
      testing::error_of([&] { return has_price(document, mapping::fixture("llama")); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kShapeMismatch);
  REQUIRE(error->place());
  CHECK(error->place()->file == "changed.json");
}

TEST_CASE("a value that no op made, in the way that the layer has, is told") {
  json document = json::parse(model::graph_text("llama"));
  document["parts"]["rope"].erase(1);
  const auto error =
      testing::error_of([&] { return has_price(document, mapping::fixture("llama")); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kMappingSchema);
}
