#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/index/axis_map.h"
#include "lib/mapping/document/config.h"

/// Layouts of a family as the transformers library cuts it: tensors by make_fixtures.py, parts of
/// ranks by cuts.py.
namespace shardtool::mapping {

/// A rank's part of a tensor: a map per axis, or nullopt if the rank has no part.
using Kept = std::optional<std::vector<index::AxisMap>>;

/// Parts of every tensor on every rank of a mesh.
struct ExpectedMesh {
  std::string mesh;                     ///< "ep=2,tp=4"
  std::vector<std::vector<Kept>> kept;  ///< by tensor, then by rank
};

struct Fixture {
  std::string family;  ///< "deepseek_v2_lite"
  std::string preset;
  std::string config_text;  ///< config.json
  ModelConfig config;       ///< config_text, parsed
  std::vector<TensorSpec> tensors;
  std::set<std::string> after_reduction;  ///< names of biases
  std::vector<ExpectedMesh> meshes;
  std::map<std::string, std::string> refused;  ///< mesh -> id of the expected error
};

/// Returns all fixtures, sorted by file name.
const std::vector<Fixture>& fixtures();
/// Throws std::logic_error if there is none.
const Fixture& fixture(const std::string& family);

}  // namespace shardtool::mapping
