#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lib/api/transform.h"
#include "tests/presets/fixture.h"
#include "tests/support/checkpoint_files.h"

/// The verbs on real checkpoints of every family, compared byte by byte with the library's cuts.
/// config.json determines the preset.
namespace shardtool::mapping {
namespace {

using test::TempFolder;
using test::Tensors;

/// Limit for reshards: more devices mean more files and prove no more.
constexpr i64 kFewDevices = 4;

Tensors tensors_of(const Fixture& family) {
  Tensors tensors;
  for (const TensorSpec& spec : family.tensors) tensors[spec.name] = test::distinct_tensor(spec);
  return tensors;
}

/// Returns the rows and columns that the fixture lists, element by element.
test::Tensor sliced(const test::Tensor& whole, const std::vector<index::AxisMap>& kept) {
  std::vector<reference::Indices> axes;
  test::Tensor part{{whole.spec.name, whole.spec.dtype, {}}, {}};
  for (const index::AxisMap& axis : kept) {
    axes.push_back(reference::indices(axis));
    part.spec.shape.push_back(static_cast<i64>(axes.back().size()));
  }
  const auto width = static_cast<size_t>(bits(whole.spec.dtype) / 8);
  std::vector<size_t> at(axes.size(), 0);
  part.bytes.resize(static_cast<size_t>(element_count(part.spec.shape).value()) * width);
  for (size_t to = 0; to < part.bytes.size(); to += width) {
    i64 from = 0;
    for (size_t a = 0; a < axes.size(); ++a) from = from * whole.spec.shape[a] + axes[a][at[a]];
    std::memcpy(&part.bytes[to], &whole.bytes[static_cast<size_t>(from) * width], width);
    for (size_t a = axes.size(); a-- > 0 && ++at[a] == axes[a].size();) at[a] = 0;
  }
  return part;
}

/// Returns the names of tensors that differ in name, shape, dtype or bytes.
std::string differences(const Tensors& ours, const Tensors& wanted) {
  std::string names;
  for (const auto& [name, tensor] : wanted) {
    const auto found = ours.find(name);
    const bool same = found != ours.end() && found->second.spec.shape == tensor.spec.shape &&
                      found->second.spec.dtype == tensor.spec.dtype &&
                      found->second.bytes == tensor.bytes;
    if (!same) names += name + " ";
  }
  for (const auto& [name, tensor] : ours) {
    if (!wanted.contains(name)) names += name + " (not expected) ";
  }
  return names;
}

void check_shards(const Fixture& family, const Tensors& whole, const ExpectedMesh& mesh,
                  const std::string& folder) {
  REQUIRE_FALSE(mesh.kept.empty());
  for (size_t rank = 0; rank < mesh.kept.front().size(); ++rank) {
    CAPTURE(rank);
    Tensors wanted;
    for (size_t t = 0; t < family.tensors.size(); ++t) {
      const std::string& name = family.tensors[t].name;
      if (const Kept& kept = mesh.kept[t][rank]) wanted[name] = sliced(whole.at(name), *kept);
    }
    const Tensors shards = test::read_tensors(folder, fmt::format("model-rank-{}-", rank));
    CHECK(differences(shards, wanted) == "");
  }
}

void split_over(const std::string& source, const std::string& mesh, const std::string& output) {
  api::SplitOptions options;
  options.source = source;
  options.mapping.mesh = mesh::parse_mesh(mesh);
  options.write.output = output;
  api::split(options);
}

void reshard_over(const std::string& source, const std::string& mesh, const std::string& output) {
  api::ReshardOptions options;
  options.sources = {source};
  options.to.mesh = mesh::parse_mesh(mesh);
  options.write.output = output;
  api::reshard(options);
}

Tensors merged(const std::string& source, const std::string& output) {
  api::MergeOptions options;
  options.sources = {source};
  options.write.output = output;
  api::merge(options);
  return test::read_tensors(output, "model");
}

bool has_experts(const Fixture& family) {
  return std::any_of(family.meshes.begin(), family.meshes.end(), [](const ExpectedMesh& mesh) {
    return mesh.mesh.find("ep=") != std::string::npos;
  });
}

/// Selects about five meshes of a family: one device first, the largest and the most unusual last.
std::vector<const ExpectedMesh*> chosen_meshes(const Fixture& family) {
  const size_t step = family.meshes.size() > 6 ? 2 : 1;
  std::vector<const ExpectedMesh*> chosen;
  for (size_t m = family.meshes.size(); m-- > 1;) {
    if ((family.meshes.size() - 1 - m) % step == 0) chosen.push_back(&family.meshes[m]);
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

/// Splits on several meshes; merges and reshards the shards.
void check_family(const Fixture& family) {
  CAPTURE(family.family);
  const TempFolder folder;
  const Tensors whole = tensors_of(family);
  test::write_checkpoint(folder / "whole", whole, 2);
  folder.write("whole/config.json", family.config_text);
  const auto meshes = chosen_meshes(family);
  REQUIRE(meshes.size() >= 2);
  for (const ExpectedMesh* mesh : meshes) {
    CAPTURE(mesh->mesh);
    split_over(folder / "whole", mesh->mesh, folder / mesh->mesh);
    check_shards(family, whole, *mesh, folder / mesh->mesh);
    CHECK(differences(merged(folder / mesh->mesh, folder / mesh->mesh + " merged"), whole) == "");
  }
  for (size_t m = 0; m < meshes.size(); ++m) {
    const std::string& from = meshes[m]->mesh;
    const std::string& to = meshes[(m + 1) % meshes.size()]->mesh;
    if (mesh::parse_mesh(to).size() > kFewDevices) continue;
    CAPTURE(from);
    CAPTURE(to);
    reshard_over(folder / from, to, folder / from + " to " + to);
    CHECK(test::folder_content(folder / from + " to " + to) == test::folder_content(folder / to));
  }
}

TEST_CASE("dense families: shards hold the library's bytes, merge and reshard keep every byte") {
  for (const Fixture& family : fixtures()) {
    if (!has_experts(family)) check_family(family);
  }
}

TEST_CASE("families with experts: shards hold the library's bytes, merge and reshard keep them") {
  for (const Fixture& family : fixtures()) {
    if (has_experts(family)) check_family(family);
  }
}

}  // namespace
}  // namespace shardtool::mapping
