#include "tests/presets/fixture.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "tests/presets/name_patterns.h"

namespace shardtool::mapping {
namespace {

using index::AxisMap;
using index::Piece;
using nlohmann::json;

/// "*" is all of the axis; otherwise intervals in local order, "0-4+8-12".
AxisMap axis_map(const std::string& text, i64 extent) {
  if (text == "*") return AxisMap::identity(extent);
  std::vector<Piece> pieces;
  i64 local = 0;
  std::istringstream intervals(text);
  for (std::string interval; std::getline(intervals, interval, '+');) {
    const i64 begin = std::stoll(interval);
    const i64 size = std::stoll(interval.substr(interval.find('-') + 1)) - begin;
    pieces.push_back({local, begin, size});
    local += size;
  }
  return AxisMap(local, extent, std::move(pieces));
}

std::vector<AxisMap> axis_maps(const std::string& text, const Shape& shape) {
  std::vector<AxisMap> maps;
  std::istringstream words(text);
  for (std::string word; words >> word;) maps.push_back(axis_map(word, shape.at(maps.size())));
  if (maps.size() != shape.size()) throw std::logic_error("a cut of another rank");
  return maps;
}

/// "3-5" is 3, 4, 5, "3*2" is 3, 3, and "." is -1.
std::vector<int> numbers(const std::string& text) {
  std::vector<int> all;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t range = word.find('-'), repeat = word.find('*');
    const int first = word.front() == '.' ? -1 : std::stoi(word);
    const int last = range == word.npos ? first : std::stoi(word.substr(range + 1));
    const int times = repeat == word.npos ? 1 : std::stoi(word.substr(repeat + 1));
    for (int number = first; number <= last; ++number) all.insert(all.end(), times, number);
  }
  return all;
}

ExpectedMesh expected_mesh(const json& value, const json& parts,
                           const std::vector<TensorSpec>& tensors) {
  ExpectedMesh mesh{value.at("mesh"), {}};
  const std::vector<int> cuts = numbers(value.at("cut"));
  if (cuts.size() != tensors.size()) throw std::logic_error("a mesh of other tensors");
  for (size_t t = 0; t < tensors.size(); ++t) {
    std::vector<Kept>& by_rank = mesh.kept.emplace_back();
    for (const int part : numbers(value.at("kept").at(cuts[t]))) {
      by_rank.push_back(part < 0 ? Kept() : axis_maps(parts.at(part), tensors[t].shape));
    }
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
    for (const std::string& name : test::expanded(row.at(0))) {
      made.tensors.push_back(
          {name, parse_dtype(row.at(1).get<std::string>()).value(), row.at(2).get<Shape>()});
    }
  }
  for (const json& mesh : value.at("meshes"))
    made.meshes.push_back(expected_mesh(mesh, value.at("parts"), made.tensors));
  return made;
}

std::vector<Fixture> read_all() {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder = SHARDTOOL_FIXTURES;
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
