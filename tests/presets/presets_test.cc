#include "lib/mapping/presets.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/base/text.h"
#include "tests/mapping/fixtures.h"
#include "tests/presets/fixture.h"

namespace shardtool::mapping {
namespace {

std::string text_of(const Kept& kept) {
  if (!kept) return "not here";
  std::string text;
  for (const index::AxisMap& axis : *kept)
    text += (text.empty() ? "" : " x ") + index::to_string(axis);
  return text;
}

Kept kept_by(const layout::Layout& layout, i64 rank) {
  const auto region = layout.region(rank);
  if (!region) return std::nullopt;
  return std::vector<index::AxisMap>(region->begin(), region->end());
}

Resolution resolved(const Fixture& family, std::string_view preset, std::string_view mesh) {
  return resolve(load_preset(preset), family.tensors, &family.config, over(mesh));
}

/// Returns the first few differences between a preset and the library, one per line.
std::string differences(const Fixture& family, std::string_view preset,
                        const ExpectedMesh& expected) {
  constexpr int kShown = 4;
  const Resolution resolution = resolved(family, preset, expected.mesh);
  REQUIRE(resolution.tensors.size() == family.tensors.size());
  std::string text;
  int found = 0;
  for (size_t t = 0; t < family.tensors.size(); ++t) {
    const layout::Layout& layout = *resolution.tensors[t].layout;
    REQUIRE(static_cast<size_t>(layout.mesh().size()) == expected.kept[t].size());
    for (i64 rank = 0; rank < layout.mesh().size(); ++rank) {
      const Kept& wanted = expected.kept[t][static_cast<size_t>(rank)];
      const Kept ours = kept_by(layout, rank);
      if (ours == wanted || ++found > kShown) continue;
      text +=
          fmt::format("{} on rank {} of {}: {}, but the library has {}\n", family.tensors[t].name,
                      rank, expected.mesh, text_of(ours), text_of(wanted));
    }
  }
  return text;
}

TEST_CASE("the config of every family chooses its preset") {
  REQUIRE(fixtures().size() > 50);
  for (const Fixture& family : fixtures()) {
    CAPTURE(family.family);
    CHECK(detect_preset(family.config, family.tensors) == family.preset);
  }
}

TEST_CASE("every preset is held against the library") {
  // Families for which the library has no class; tests/mapping/presets_test.cc has their expected
  // values.
  const std::set<std::string> without_class{"chatglm", "internlm2"};
  for (const Preset& preset : presets()) {
    if (without_class.contains(preset.name)) continue;
    CAPTURE(preset.name);
    CHECK(std::any_of(fixtures().begin(), fixtures().end(),
                      [&](const Fixture& family) { return family.preset == preset.name; }));
  }
}

TEST_CASE("every rank keeps of every tensor what the family's own code would give it") {
  for (const Fixture& family : fixtures()) {
    for (const ExpectedMesh& mesh : family.meshes) {
      CAPTURE(family.family);
      CHECK(differences(family, family.preset, mesh) == "");
    }
  }
}

TEST_CASE("the preset of another form of the family is found out") {
  CHECK_ERROR(kShapeMismatch, resolved(fixture("gpt_bigcode_multi_head"), "gpt_bigcode", "tp=2"));
  CHECK_ERROR(kShapeMismatch, resolved(fixture("falcon_multi_query"), "falcon_multi_head", "tp=2"));
  CHECK_ERROR(kShapeMismatch, resolved(fixture("falcon"), "falcon_multi_head", "tp=2"));
}

TEST_CASE("biases that are added after a reduction say so, and no others do") {
  for (const Fixture& family : fixtures()) {
    CAPTURE(family.family);
    std::set<std::string> ours;
    for (const ResolvedTensor& tensor : resolved(family, family.preset, "dp=2").tensors) {
      if (tensor.by->bias == "after_reduction") ours.insert(family.tensors[tensor.tensor].name);
    }
    CHECK(ours == family.after_reduction);
  }
}

TEST_CASE("no preset warns, drops or replicates what it does not know") {
  for (const Fixture& family : fixtures()) {
    CAPTURE(family.family);
    const Resolution resolution = resolved(family, family.preset, "dp=2");
    // Presets cut no tensor over "dp", which must be the only warning.
    REQUIRE(resolution.warnings.size() == 1);
    CHECK(resolution.warnings.front().find("'dp'") != std::string::npos);
    CHECK(resolution.dropped.empty());
    std::vector<TensorSpec> more = family.tensors;
    more.push_back(spec("model.layers.0.self_attn.novelty.weight", {8, 8}));
    CHECK_ERROR(kNoRule, resolve(load_preset(family.preset), more, &family.config, over("tp=1")));
  }
}

TEST_CASE("meshes that would cut heads apart or leave a device empty are refused by name") {
  for (const Fixture& family : fixtures()) {
    CHECK_FALSE(family.refused.empty());
    for (const auto& [mesh, id] : family.refused) {
      CAPTURE(family.family);
      CAPTURE(mesh);
      const auto e = error_of([&] { return resolved(family, family.preset, mesh); });
      REQUIRE(e);
      CHECK(e->id() == id);
      CHECK_FALSE(e->help_lines().empty());
    }
  }
}

}  // namespace
}  // namespace shardtool::mapping
