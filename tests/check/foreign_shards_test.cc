// Shards without a manifest: whole shapes are recovered from the devices' shapes and the mapping.
#include "lib/check/foreign_shards.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/check/model.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolve.h"
#include "tests/presets/fixture.h"

namespace shardtool::test {
namespace {

using mapping::Resolution;

/// Shards of the devices of a mesh, without data.
check::ForeignShards shards_of(const Resolution& resolution, std::span<const TensorSpec> tensors) {
  check::ForeignShards shards;
  for (i64 rank = 0; rank < resolution.mesh.size(); ++rank) {
    shards.files.push_back({{rank, {}, {}}, fmt::format("rank{}", rank), static_cast<int>(rank)});
  }
  for (const mapping::ResolvedTensor& resolved : resolution.tensors) {
    for (const i64 rank : resolved.layout->ranks()) {
      const TensorSpec& whole = tensors[resolved.tensor];
      shards.tensors.push_back(
          {{whole.name, whole.dtype, index::local_shape(*resolved.layout->region(rank))},
           rank,
           {static_cast<int>(rank), 0}});
    }
  }
  return shards;
}

mapping::ResolveOptions over(const std::string& mesh) {
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh(mesh);
  options.report = [](const Error&) {};
  return options;
}

TEST_CASE("every model of every family fits its own shards on every mesh that it can be cut for") {
  int meshes = 0;
  for (const mapping::Fixture& fixture : mapping::fixtures()) {
    const mapping::Mapping preset = mapping::load_preset(fixture.preset);
    for (const mapping::ExpectedMesh& expected : fixture.meshes) {
      CAPTURE(fixture.family);
      CAPTURE(expected.mesh);
      const auto resolve = [&](std::span<const TensorSpec> specs) {
        return mapping::resolve(preset, specs, &fixture.config, over(expected.mesh));
      };
      const Resolution resolution = resolve(fixture.tensors);
      check::Findings findings{check::Profile("")};
      check::ForeignShards shards = shards_of(resolution, fixture.tensors);
      shards.extents = check::extents_of_model(fixture.config);
      const auto data = check::check_foreign_shards(shards, resolve, findings);
      CHECK(data.size() == resolution.tensors.size());
      std::vector<TensorSpec> wholes;
      for (const check::DataTensor& tensor : data) wholes.push_back(tensor.spec);
      check::check_model({wholes, fixture.config, "config.json"}, findings);
      for (const check::Finding& finding : findings.all()) {
        if (finding.severity < check::Severity::kWarning) continue;
        FAIL_CHECK(check::rule_info(finding.rule).id << " " << finding.tensor << " "
                                                     << finding.found);
      }
      ++meshes;
    }
  }
  CHECK(meshes > 50);
}

}  // namespace
}  // namespace shardtool::test
