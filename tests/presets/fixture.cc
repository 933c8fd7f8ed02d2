#include "tests/presets/fixture.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace shardtool::mapping {
namespace {

using index::AxisMap;
using index::Piece;
using nlohmann::json;

/// 0 is all of the axis; otherwise intervals in local order.
AxisMap axis_map(const json& value, i64 extent) {
  if (value.is_number()) return AxisMap::identity(extent);
  std::vector<Piece> pieces;
  i64 local = 0;
  for (const json& interval : value) {
    const i64 begin = interval.at(0);
    const i64 size = interval.at(1).get<i64>() - begin;
    pieces.push_back({local, begin, size});
    local += size;
  }
  return AxisMap(local, extent, std::move(pieces));
}

Kept kept(const json& value, const Shape& shape) {
  if (value.is_null()) return std::nullopt;
  if (value.size() != shape.size()) throw std::logic_error("a cut of another rank");
  std::vector<AxisMap> axes;
  for (size_t a = 0; a < shape.size(); ++a) axes.push_back(axis_map(value[a], shape[a]));
  return axes;
}

ExpectedMesh expected_mesh(const json& value, const std::vector<TensorSpec>& tensors) {
  ExpectedMesh mesh{value.at("mesh"), {}};
  for (size_t t = 0; t < tensors.size(); ++t) {
    std::vector<Kept> by_rank;
    for (const json& rank : value.at("kept").at(value.at("cut").at(t).get<size_t>())) {
      by_rank.push_back(kept(rank, tensors[t].shape));
    }
    mesh.kept.push_back(std::move(by_rank));
  }
  return mesh;
}

Fixture read_fixture(const std::filesystem::path& path) {
  std::ifstream file(path);
  const json value = json::parse(file);
  Fixture made{value.at("family"),
               value.at("preset"),
               value.at("config").dump(),
               parse_config(value.at("config").dump(), "config.json"),
               {},
               value.at("after_reduction"),
               {},
               value.at("refused")};
  for (const json& row : value.at("tensors")) {
    made.tensors.push_back(
        {row.at(0), parse_dtype(row.at(1).get<std::string>()).value(), row.at(2).get<Shape>()});
  }
  for (const json& mesh : value.at("meshes"))
    made.meshes.push_back(expected_mesh(mesh, made.tensors));
  return made;
}

std::vector<Fixture> read_all() {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder = SHARDTOOL_SOURCE_DIR "/tests/presets/fixtures";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Fixture> all;
  for (const std::filesystem::path& path : paths) all.push_back(read_fixture(path));
  return all;
}

}  // namespace

const std::vector<Fixture>& fixtures() {
  static const std::vector<Fixture> all = read_all();
  return all;
}

const Fixture& fixture(const std::string& family) {
  for (const Fixture& candidate : fixtures()) {
    if (candidate.family == family) return candidate;
  }
  throw std::logic_error("no fixture " + family);
}

}  // namespace shardtool::mapping
