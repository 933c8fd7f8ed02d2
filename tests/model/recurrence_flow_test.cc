// Allowed layouts of recurrences and convolutions, beyond those of presets.
#include <doctest/doctest.h>
#include <fmt/format.h>

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

/// Collectives of a decoded token, with rules before the preset's.
std::string comm_with(const std::string& family, const std::string& rules) {
  const mapping::Fixture& f = mapping::fixture(family);
  const test::TempFolder folder;
  const std::string path = folder / "m.json";
  std::ofstream(path) << fmt::format(R"({{"version": 1, "extends": ["preset:{}"], "rules": [{}]}})",
                                     f.preset, rules);
  std::string why_not;
  const auto bound = model::bind_model(model::find_graph(f.config, why_not), f.config, f.tensors);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh("tp=2");
  const auto resolution = resolve(mapping::load_mapping(path), f.tensors, &f.config, options);
  const auto price = model::price(bound, f.tensors, model::weights_of(resolution, f.tensors.size()),
                                  resolution.mesh, {}, nullptr);
  std::string text;
  for (const model::CommRow& row : price.decode.comm) {
    text += fmt::format("{} {} x {}; ", to_string(row.collective.op), row.count,
                        row.collective.payload_bytes);
  }
  return text;
}

std::string rule(const std::string& match, const std::string& strategy) {
  return fmt::format(R"({{"match": "**.{}", "strategy": "{}"}})", match, strategy);
}

}  // namespace

TEST_CASE("a convolution of frames is whole, and one that is cut is refused") {
  const auto error = error_of([] {
    comm_with("whisper", R"({"match": "model.encoder.conv1.weight", "strategy": "rowwise"})");
  });
  REQUIRE(error);
  CHECK(error->message() == "no rule takes a convolution of frames that is cut");
}

TEST_CASE("what a state needs may be whole on every device: each takes what its heads need") {
  const std::string whole = rule("linear_attn.{A_log,dt_bias,conv1d.weight}", "replicate");
  CHECK(comm_with("qwen3_5_text", whole) == comm_with("qwen3_5_text", ""));
  // Also with a whole projection of steps.
  CHECK(comm_with("qwen3_5_text", rule("linear_attn.in_proj_{a,b}.weight", "replicate")) ==
        comm_with("qwen3_5_text", ""));
}

TEST_CASE("states whose values are whole gather what is cut") {
  const std::string values = rule("linear_attn.{in_proj_qkv,conv1d}.weight", "replicate");
  const std::string gathered = comm_with("qwen3_5_text", values);
  CHECK(gathered != comm_with("qwen3_5_text", ""));
  CHECK(gathered.starts_with("all_gather"));
}

TEST_CASE("a convolution whose weights are cut in another way names both placements") {
  const auto error =
      error_of([] { comm_with("qwen3_5_text", rule("linear_attn.conv1d.weight", "rowwise")); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
  CHECK(error->message().find("has other features of ") != std::string::npos);
  std::string notes;
  for (const auto& note : error->notes()) notes += note.first + " ";
  CHECK(notes == "has needs op weights ");
}

TEST_CASE("an attention needs the keys and values of its queries on each device") {
  const std::string fused = rule("self_attn.qkv_proj.weight", "rowwise");
  const auto error = error_of([&] { comm_with("phi3", fused); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
  CHECK(error->message().starts_with("rank 0 has other features of 'k_at' "));
  CHECK(testing::has_note(*error, "op", "attention, which makes 'context', in decoder 0"));
  CHECK(testing::has_note(*error, "weights", "layers.<layer>.self_attn.qkv_proj.weight"));
}
