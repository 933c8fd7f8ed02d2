#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/api/transform.h"
#include "lib/base/shape.h"
#include "lib/index/region.h"
#include "lib/mesh/mesh.h"

namespace shardtool::api {

struct InspectOptions {
  std::string source;
  /// Mapping whose layout is also shown, if it says how to cut. Its config.json is used for files
  /// of another tool. Outputs with a manifest show their layout without a mapping.
  std::optional<MappingChoice> mapping;
  std::string filter;        ///< a glob over tensor names, or empty
  bool list_tensors = true;  ///< false: summary only, which needs less memory
  bool draws = false;        ///< also report what pictures show: `rules`
};

struct InspectShard {
  i64 rank = 0;
  i64 bytes = 0;
  index::Region region;
  std::string file = {};  ///< that holds it, in an output; else empty
};

/// Elements of an axis that are cut by themselves: the q of a fused q, k and v.
struct InspectSection {
  i64 begin = 0;     ///< in elements as stored; it ends where the next one begins
  std::string name;  ///< "q", "gate"; empty if the mapping does not say
};

struct InspectAxis {
  std::string logical;
  std::string expression;
  std::vector<InspectSection> sections = {};  ///< of an axis that has several; else empty
};

struct InspectTensor {
  std::string name;
  std::string dtype;  ///< "BF16", or the block type of a GGUF tensor, "Q4_K"
  Shape shape;
  i64 bytes = 0;
  std::string file;  ///< for shards, the file of the first one
  i64 offset = 0;    ///< of the first element, from the start of the file
  // set with a mapping, or for outputs with a manifest
  std::string rule;
  std::string strategy;    ///< kind tag or "dims"
  std::string convention;  ///< "column-parallel" / "row-parallel" if the cut is one of them
  std::vector<InspectAxis> axes;
  std::vector<InspectShard> shards;
};

/// Tensors of a rule that are on the same ranks.
struct DrawnOwners {
  std::vector<i64> ranks;  ///< ascending
  i64 tensors = 0;
  std::string first;  ///< name of the first tensor
};

/// Tensors that one rule cuts, with one of them as the example that a picture shows.
struct DrawnRule {
  i64 tensors = 0;
  i64 bytes = 0;    ///< of the tensors, each once
  i64 layouts = 0;  ///< distinct ones: several if, say, every expert is on a device of its own
  InspectTensor example;  ///< the largest tensor, the first of equals; with every rank's part
  /// Places of the tensors, by their ranks; empty if all are on the same ones.
  std::vector<DrawnOwners> owners;
};

/// Part of what a trainer saved that has no tensor.
struct InspectEntry {
  std::string name;
  std::string what;  ///< such as "an integer"; empty where the format does not say it

  auto operator<=>(const InspectEntry&) const = default;
};

/// A row of a summary by dtype or by module.
struct InspectGroup {
  std::string name;
  i64 tensors = 0;
  i64 bytes = 0;
};

struct InspectReport {
  std::string path;
  std::string format;
  i64 files = 0;
  i64 tensors = 0;     ///< logical tensors; replicas and shards count once
  i64 parameters = 0;  ///< elements; of packed weights those that ops read
  i64 bytes = 0;
  std::string model_type;             ///< from config.json, or empty
  std::string architecture;           ///< architectures[0], or empty
  std::string preset;                 ///< suggested, or empty
  std::map<std::string, i64> config;  ///< heads, kv_heads, head_dim, layers, hidden, vocab if known
  std::vector<InspectGroup> dtypes;
  std::vector<InspectGroup> modules;  ///< numbers in names replaced by *
  std::optional<mesh::Mesh> mesh;
  std::vector<i64> bytes_per_rank;   ///< set with a mesh
  std::vector<InspectTensor> list;   ///< after the filter, in the order of (file, offset)
  std::vector<InspectEntry> others;  ///< after the filter, by name, each once
  std::vector<DrawnRule> rules;      ///< with InspectOptions::draws, of a layout
  std::vector<std::string> warnings;
};

/// Reads headers only, no tensor data. 94,000 tensors in under 150 ms. Also reads GGUF models;
/// throws kUnsupported for these with a mapping.
InspectReport inspect(const InspectOptions& options);

}  // namespace shardtool::api
