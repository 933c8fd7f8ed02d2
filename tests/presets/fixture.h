#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/index/axis_map.h"
#include "lib/mapping/document/config.h"

/// What the transformers library says about a family: fixtures/*.json, made by make_fixtures.py.
namespace shardtool::mapping {

/// What one rank keeps of a tensor: a map per axis, or nothing where the tensor is not on it.
using Kept = std::optional<std::vector<index::AxisMap>>;

/// What every rank of a mesh keeps of every tensor.
struct ExpectedMesh {
  std::string mesh;                     ///< "ep=2,tp=4"
  std::vector<std::vector<Kept>> kept;  ///< by tensor, then by rank
};

struct Fixture {
  std::string family;  ///< "deepseek_v2_lite"
  std::string preset;
  std::string config_text;  ///< config.json
  ModelConfig config;       ///< the same, parsed
  std::vector<TensorSpec> tensors;
  std::set<std::string> after_reduction;  ///< names of biases
  std::vector<ExpectedMesh> meshes;
  std::map<std::string, std::string> refused;  ///< mesh -> id of the error
};

/// All of them, sorted by their files' names.
const std::vector<Fixture>& fixtures();
/// Throws std::logic_error where there is none.
const Fixture& fixture(const std::string& family);

}  // namespace shardtool::mapping
