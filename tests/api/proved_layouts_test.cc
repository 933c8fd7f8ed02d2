// The manifest proves an output in any layout without the original: a correct one has no finding,
// and one changed bit of any shard is found.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/api/check.h"
#include "tests/api/model_files.h"

namespace shardtool::api {
namespace {

using check::CheckRule;
using mapping::TinyModel;
using nlohmann::json;
using test::ModelFiles;

struct Layout {
  std::string what;
  TinyModel model;
  std::string preset;
  std::string axes;
  std::string mesh;
};

/// Drops findings of NaN, which random bytes contain.
CheckReport read_all(const std::string& parts) {
  CheckOptions options;
  options.sources = {parts};
  options.ignore = {"ST0701", "ST0702", "ST0703"};
  options.data.emplace();
  return check(options);
}

/// Changes one bit in every `step`-th shard, checks that the finding names it, and restores the
/// bit.
void check_every_change_is_found(const std::string& parts, size_t step) {
  std::ifstream in(parts + "/manifest.json");
  const json manifest = json::parse(in);
  size_t number = 0;
  for (const auto& [name, tensor] : manifest["tensors"].items()) {
    for (const json& shard : tensor["shards"]) {
      const i64 bytes = shard["bytes"].get<i64>();
      if (bytes == 0 || number++ % step != 0) continue;
      const std::string path =
          parts + "/" + manifest["files"][shard["file"].get<size_t>()]["name"].get<std::string>();
      const i64 at = shard["offset"].get<i64>() + static_cast<i64>(number * 977) % bytes;
      test::flip_bits(path, at, 0x10);
      const CheckReport report = read_all(parts);
      test::flip_bits(path, at, 0x10);
      CAPTURE(name);
      CAPTURE(path);
      CHECK(std::any_of(report.findings.begin(), report.findings.end(), [&](const auto& finding) {
        return finding.rule == CheckRule::kShardHash && finding.tensor == name &&
               finding.rank == shard["rank"].get<i64>();
      }));
    }
  }
}

TEST_CASE("check proves every layout against the manifest, without the original") {
  using namespace mapping;
  const std::vector<Layout> layouts = {
      {"KV heads replicated", tiny_llama(), "llama", "", "tp=8"},
      {"KV heads gathered", tiny_llama({.heads = 10, .kv_heads = 2}), "llama",
       R"("kv_heads": {"small": "gather"})", "tp=4"},
      {"uneven", tiny_llama({.heads = 10, .kv_heads = 10, .mlp = 97, .vocab = 101}), "llama", "",
       "tp=4"},
      {"padded", tiny_llama({.vocab = 101}), "llama",
       R"("vocab": {"uneven": "pad", "pad_to": 64, "padding": "repeat_last"})", "tp=2"},
      {"replicas and stages", tiny_llama(), "llama", "", "dp=2,pp=2,tp=2"},
      {"experts", tiny_mixtral(), "mixtral", "", "ep=2,tp=2"},
      {"experts on several devices", tiny_mixtral({.layers = 1}, 6), "mixtral",
       R"("experts": {"owners": [[0, 1, 2], [3, 0, 4], [5, 0, 3]]})", "ep=3"},
      {"fused", tiny_phi3(), "phi3", "", "tp=2"},
      {"interleaved", tiny_gpt_neox(), "gpt_neox", "", "tp=4"},
      {"stacked", tiny_gpt2(), "gpt2", "", "tp=3"},
  };
  for (const Layout& layout : layouts) {
    CAPTURE(layout.what);
    ModelFiles model(layout.model);
    model.extend(layout.preset, layout.axes);
    const std::string parts = model.split("parts", layout.mesh);
    const CheckReport sound = read_all(parts);
    for (const check::Finding& finding : sound.findings) {
      CAPTURE(finding.message);
      CHECK(finding.severity < check::Severity::kError);
    }
    CHECK(sound.bytes_read == sound.bytes);
    check_every_change_is_found(parts, 5);
  }
}

}  // namespace
}  // namespace shardtool::api
