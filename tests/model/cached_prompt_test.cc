#include <doctest/doctest.h>

#include <algorithm>

#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/causal.h"
#include "lib/model/graph/graph_list.h"
#include "tests/model/published.h"
#include "tests/presets/fixture.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

/// Prefills of prompts whose first tokens the cache has.
using namespace shardtool;
using doctest::Approx;
using model::Amounts;
using model::ReplicaWorkload;

namespace {

/// The model of a fixture on one device.
struct Whole {
  const mapping::Fixture& fixture;
  model::Model bound;
  mapping::Resolution resolution;

  Amounts prefill(i64 prompt, i64 cached) const {
    return pass().prefill({.prompt_len = prompt, .cached = cached}, nullptr).amounts;
  }
  Amounts decode(i64 context) const { return pass().decode({.context = context}, nullptr).amounts; }
  bool has_latents() const {
    return any_attention([](const ops::Attention& op) { return op.latent.has_value(); });
  }
  /// True for attention to a number of entries that is bounded on average.
  bool chooses_entries() const {
    return any_attention([](const ops::Attention& op) { return op.entries && op.index; });
  }

 private:
  model::ForwardPass pass() const {
    const size_t tensors = fixture.tensors.size();
    return {bound, fixture.tensors, model::weights_of(resolution, tensors), resolution.mesh};
  }
  template <class Test>
  bool any_attention(const Test& test) const {
    return std::ranges::any_of(bound.layers, [&](const model::Layer& layer) {
      return std::ranges::any_of(layer.ops, [&](const model::BoundOp& op) {
        const auto* attention = std::get_if<ops::Attention>(&op.op->kind);
        return attention != nullptr && test(*attention);
      });
    });
  }
};

/// Models of all families that have a graph, and whose attention is causal, or is not.
std::vector<Whole> models(bool causal) {
  std::vector<Whole> all;
  for (const mapping::Fixture& f : mapping::fixtures()) {
    std::string why_not;
    const auto graph = model::find_graph(f.config, why_not);
    if (!graph) continue;
    model::Model bound = model::bind_model(graph, f.config, f.tensors);
    if (model::is_causal(bound) != causal) continue;
    mapping::ResolveOptions options;
    options.mesh = mesh::parse_mesh("tp=1");
    all.push_back({f, std::move(bound),
                   resolve(mapping::load_preset(f.preset), f.tensors, &f.config, options)});
  }
  return all;
}

}  // namespace

TEST_CASE("a prompt of which one token is not cached is a decode step") {
  const auto all = models(true);
  CHECK(all.size() > 50);
  for (const Whole& one : all) {
    CAPTURE(one.fixture.family);
    for (const i64 context : {2, 7, 40}) {
      const Amounts prefill = one.prefill(context, context - 1), decode = one.decode(context);
      CHECK(prefill.flops == decode.flops);
      CHECK(prefill.weight_bytes == decode.weight_bytes);
      CHECK(prefill.cache_bytes == decode.cache_bytes);
    }
  }
}

TEST_CASE("a prompt in two pieces has the products of one, but for what latents make again") {
  const auto all = models(true);
  for (const Whole& one : all) {
    if (one.chooses_entries()) continue;
    CAPTURE(one.fixture.family);
    CHECK(rc::check("pieces", [&] {
      const i64 first = *gen::between(1, 40);
      const i64 prompt = first + *gen::between(1, 40);
      const double pieces =
          one.prefill(first, 0).attention_flops + one.prefill(prompt, first).attention_flops;
      const double at_once = one.prefill(prompt, 0).attention_flops;
      if (one.has_latents()) {
        RC_ASSERT(pieces >= at_once);
      } else {
        RC_ASSERT(std::abs(pieces - at_once) <= 1e-12 * at_once);
      }
    }));
  }
}

TEST_CASE("the more of a prompt is cached, the less is computed") {
  for (const Whole& one : models(true)) {
    CAPTURE(one.fixture.family);
    for (i64 cached = 1; cached < 40; ++cached)
      CHECK(one.prefill(40, cached).all_flops() < one.prefill(40, cached - 1).all_flops());
  }
}

TEST_CASE("no first tokens of a prompt are cached where they attend to later ones") {
  const auto all = models(false);
  CHECK(all.size() > 5);
  for (const Whole& one : all) CHECK_ERROR(kUsage, one.prefill(8, 1));
  for (const Whole& one : models(true)) {
    CHECK_ERROR(kUsage, one.prefill(8, 8));
    CHECK_ERROR(kUsage, one.prefill(8, -1));
  }
}
