// Activations that layers keep for their backward pass. The fixtures have 48 features; 8 query and
// 4 KV heads of 4 features, and 2 of 6 experts per token.
#include <doctest/doctest.h>

#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/flow/token_axes.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/memory_facts.h"
#include "tests/model/published.h"
#include "tests/presets/fixture.h"

using namespace shardtool;

namespace {

enum class Tokens { kOwn, kSame };  ///< of the devices along axes that distribute experts

/// Widths of a block on the devices, which all keep as much.
i64 kept(const std::string& family, const std::string& mesh, i64 number,
         Tokens tokens = Tokens::kOwn) {
  const mapping::Fixture& f = mapping::fixture(family);
  std::string why_not;
  const auto bound = model::bind_model(model::find_graph(f.config, why_not), f.config, f.tensors);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh(mesh);
  const auto resolution = resolve(mapping::load_preset(f.preset), f.tensors, &f.config, options);
  const auto layouts = model::layouts_of(resolution, f.tensors.size());
  mesh::Over own;
  if (tokens == Tokens::kOwn) own = model::token_axes(bound, layouts, resolution.mesh);
  const auto layer = std::ranges::find(bound.layers, number, &model::Layer::number);
  REQUIRE(layer != bound.layers.end());
  const auto widths = model::kept_widths(bound, *layer, layouts, resolution.mesh, own);
  for (const i64 width : widths) CHECK(width == widths.front());
  return widths.front();
}

}  // namespace

TEST_CASE("of each chosen expert a token keeps its input, gate, up and the input of down") {
  // 32 + 16 + 16 of q, k and v, and 32 of o's input; 6 scores; 2 experts of 48 + 3 * 76.
  constexpr i64 kAttention = 96, kScores = 6, kExperts = 2 * (48 + 3 * 76);
  static_assert(kAttention + kScores + kExperts == 654);
  for (const char* family : {"mixtral", "mixtral_stacked"}) {
    CAPTURE(family);
    CHECK(kept(family, "tp=1", 1) == 654);
    // Half of the heads and of each expert, whose inputs are whole: 48 + 6 + 2 * (48 + 3 * 38).
    CHECK(kept(family, "tp=2", 1) == 378);
    // Tokens of two devices choose among half of the experts each.
    CHECK(kept(family, "ep=2", 1) == 654);
    CHECK(kept(family, "ep=2,tp=2", 1) == 378);
    // With the same tokens a device has half of the chosen experts: 96 + 6 + 276.
    CHECK(kept(family, "ep=2", 1, Tokens::kSame) == 378);
  }
}

TEST_CASE("experts whose rows follow each other keep as much") {
  // Heads of 6 features: 96 of qkv, 48 of o's input; 6 scores; 2 experts of 48 + 3 * 20.
  CHECK(kept("dbrx", "tp=1", 1) == 96 + 48 + 6 + 216);
  CHECK(kept("dbrx", "tp=2", 1) == 48 + 24 + 6 + 2 * (48 + 3 * 10));
  CHECK(kept("dbrx", "ep=2", 1) == 366);
}

TEST_CASE("a dense layer keeps its own width, beside layers with experts") {
  CHECK(kept("qwen3_moe", "tp=1", 0) == 96 + 3 * 76);
  CHECK(kept("qwen3_moe", "tp=1", 1) == 96 + 6 + 2 * (48 + 3 * 20));
}

TEST_CASE("a block without gates keeps 4 h and twice the width of its MLP, here 76") {
  CHECK(kept("gpt2", "tp=1", 0) == 4 * 48 + 2 * 76);
  CHECK(kept("gpt2", "tp=2", 0) == 2 * 48 + 76);
}
