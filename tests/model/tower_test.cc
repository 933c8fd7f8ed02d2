// Image towers: presence, cost and format.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/price.h"
#include "tests/model/published.h"
#include "tests/presets/fixture.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace shardtool;
using testing::error_of;

namespace {

std::vector<TensorSpec> without(std::vector<TensorSpec> tensors, const std::string& part) {
  std::erase_if(tensors, [&](const TensorSpec& t) { return t.name.find(part) != t.name.npos; });
  return tensors;
}

model::Model bound(const mapping::Fixture& f, const std::vector<TensorSpec>& tensors) {
  std::string why_not;
  return bind_model(model::find_graph(f.config, why_not), f.config, tensors);
}

i64 vision_encoder_layers(const model::Model& model) {
  return std::ranges::count_if(model.layers, &model::Layer::is_vision_encoder);
}

/// Price with rules before those of the preset.
model::Price price_of(const mapping::Fixture& f, const std::vector<TensorSpec>& tensors,
                      const std::string& rules = "") {
  const test::TempFolder folder;
  const std::string path = folder / "m.json";
  std::ofstream(path) << fmt::format(
      R"({{"version": 1, "unused_rule": "ignore", "extends": ["preset:{}"], "rules": [{}]}})",
      f.preset, rules);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh("tp=2");
  const auto resolution = resolve(mapping::load_mapping(path), tensors, &f.config, options);
  return model::price(bound(f, tensors), tensors, model::weights_of(resolution, tensors.size()),
                      resolution.mesh, {}, nullptr);
}

std::string refusal(const std::string& more, const std::string& tower) {
  const auto error = error_of([&] {
    model::decode_graph({{"mine", R"({"version": 1, "family": "mine", "description": "d",
    "source": "s", "model_types": ["mine"], "sizes": {"n": 4, "layers": 1},
    "start": [{"op": "embed", "out": "x", "table": "w", "rows": "n", "size": "n"}],
    "blocks": [{"name": "b", "ops": [{"op": "act", "in": "x", "out": "x", "kind": "silu"}]}],
    )" + more + R"("tower": {"name": "t", "layers": "layers", )" +
                                      tower + R"(},
    "end": [{"op": "act", "in": "x", "out": "y", "kind": "silu"}]})"}});
  });
  return error ? error->message() : "";
}

/// Error for a tower with this op at its end.
std::string refused_at_end(const std::string& op) {
  return refusal(R"("passed": ["image"], )", R"("start": [{"op": "given", "out": "x", "size": "n"}],
      "blocks": [{"name": "b", "ops": [{"op": "act", "in": "x", "out": "x", "kind": "silu"}]}],
      "insert": [{"op": "insert", "in": ["x", "image"], "out": "x",
        "patches": {"order": "rows", "count": "n"}}],
      "end": [)" + op + "]");
}

}  // namespace

TEST_CASE("a tower is there where its tensors are") {
  for (const std::string family :
       {"mistral3", "qwen2_vl", "qwen2_5_vl", "gemma3", "qwen3_vl", "qwen3_vl_moe", "qwen3_5",
        "qwen3_5_moe", "llama4", "glm4v", "glm4v_moe", "internvl", "internvl_qwen3", "llava",
        "llava_mistral"}) {
    CAPTURE(family);
    const mapping::Fixture& f = mapping::fixture(family);
    const model::Model whole = bound(f, f.tensors);
    CHECK(vision_encoder_layers(whole) >= 2);
    CHECK(whole.layers.front().is_vision_encoder);
    CHECK(whole.unread.empty());
    const auto words =
        without(without(without(f.tensors, "vis"), "multi_modal_projector"), "newline");
    REQUIRE(words.size() < f.tensors.size());
    const model::Model alone = bound(f, words);
    CHECK(vision_encoder_layers(alone) == 0);
    CHECK(alone.unread.empty());
    const auto inserts = [](const model::Model& model) {
      i64 count = 0;
      for (const model::Layer& layer : model.layers) {
        count += std::ranges::count_if(layer.ops, [](const ops::BoundOp& op) {
          return std::holds_alternative<ops::Insert>(op.op->kind);
        });
      }
      return count;
    };
    CHECK(inserts(whole) >= 1);
    CHECK(inserts(alone) == 0);
  }
}

TEST_CASE("a tower whose last layer's result is not met runs all layers but that one") {
  const mapping::Fixture& f = mapping::fixture("llava");
  const model::Model whole = bound(f, f.tensors);
  const auto ops_of = [&](i64 number) {
    const auto layer = std::ranges::find_if(whole.layers, [&](const model::Layer& one) {
      return one.is_vision_encoder && one.number == number;
    });
    REQUIRE(layer != whole.layers.end());
    return layer->ops.size();
  };
  CHECK(ops_of(0) > 10);
  CHECK(ops_of(1) == 0);
}

TEST_CASE("a tower that lacks a tensor behind its start is an error that names it") {
  const mapping::Fixture& f = mapping::fixture("qwen2_5_vl");
  const auto error = error_of([&] { bound(f, without(f.tensors, "merger.mlp.2.weight")); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
}

TEST_CASE("a prompt of words costs what it costs without a tower") {
  for (const std::string family : {"mistral3", "qwen2_5_vl", "gemma3"}) {
    CAPTURE(family);
    const mapping::Fixture& f = mapping::fixture(family);
    const auto with = price_of(f, f.tensors);
    const auto alone = price_of(f, without(without(f.tensors, "vis"), "multi_modal_projector"));
    CHECK(with.prefill.amounts.flops == alone.prefill.amounts.flops);
    CHECK(with.prefill.amounts.weight_bytes == alone.prefill.amounts.weight_bytes);
    CHECK(with.decode.amounts.launches == alone.decode.amounts.launches);
    CHECK(with.prefill.comm.size() == alone.prefill.comm.size());
  }
}

TEST_CASE("columns that are several axes are whole") {
  const mapping::Fixture& f = mapping::fixture("qwen2_5_vl");
  const auto cut = error_of([&] {
    price_of(
        f, f.tensors,
        R"({"match": "**patch_embed.proj.weight", "strategy": {"type": "axiswise", "axis": 3}})");
  });
  REQUIRE(cut);
  CHECK(cut->message() ==
        "no rule takes a matrix whose columns are several axes, axis 3 of which is cut");
}

TEST_CASE("what a tower and its ops lack is refused") {
  CHECK(refused_at_end(R"({"op": "merge", "in": "x", "out": "image", "form": "mean",
    "patches": {"order": "rows", "count": "n"}})")
            .empty());
  CHECK(refused_at_end(R"({"op": "merge", "in": "x", "out": "image", "form": "mean"})")
            .find("'patches'") != std::string::npos);
  CHECK(refused_at_end(R"({"op": "merge", "in": "x", "out": "image", "form": "sum",
    "patches": {"order": "rows", "count": "n"}})")
            .find("form") != std::string::npos);
  CHECK(refused_at_end(R"({"op": "insert", "in": "x", "out": "image",
    "patches": {"order": "rows", "count": "n"}})")
            .ends_with("an op with two inputs, words and an image"));
  CHECK(refused_at_end(R"({"op": "embed", "out": "image", "by": "patch", "table": "w", "rows": "n",
    "size": "n"})")
            .ends_with("an op with \"patches\" where it is by patch, and only there"));
  CHECK(refused_at_end(R"({"op": "linear", "in": "x", "out": "image", "weight": "w", "rows": "n",
    "columns": ["n", "n"], "kernel": "in_out"})")
            .ends_with("an op whose kernel is out_in where the columns are several axes"));
  CHECK(refused_at_end(R"({"op": "linear", "in": "x", "out": "image", "weight": "w", "rows": "n",
    "columns": ["n + n", "n"]})")
            .ends_with("axes without '+'"));
  CHECK(refused_at_end(R"({"op": "rope", "in": "x", "out": "image", "style": "half", "head": "n",
    "theta": 100, "scaling": "s",
    "by_patch": {"patches": {"order": "rows", "count": "n"}, "frequencies": "of_half"}})")
            .ends_with("a rotation by patches without a scaling"));
  CHECK(refusal("", R"("start": [{"op": "given", "out": "x", "size": "n"}], "blocks": [],
    "end": [])")
            .find("'insert'") != std::string::npos);
  CHECK(refusal(R"("extends": ["one"], )", R"("start": [], "blocks": [], "end": [], "insert": [])")
            .find("extends") != std::string::npos);
}
