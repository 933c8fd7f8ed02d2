#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/plan_search.h"
#include "lib/api/planning/planned_model.h"
#include "lib/api/planning/search/layout_space.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/price.h"

namespace shardtool::api {

/// One replica of a model on its devices: memory from the headers, and passes to price.
struct PlacedReplica {
  mesh::Mesh mesh;
  AppliedMapping applied;
  PlannedModel model;
  model::StoredWeights weights;
  std::optional<model::ForwardPass> pass;
  Dtype activations = Dtype::kBF16;
};

/// Memory of a replica for one sequence, on its fullest device, in bytes.
struct ReplicaMemory {
  i64 weights = 0;
  i64 total = 0;         ///< with one sequence and one prompt in work
  i64 per_sequence = 0;  ///< cache and states
  i64 places = 0;        ///< sequences that fit all devices, in a step, too; 0: not even one
};

/// A mapping, and the layouts that it gives to a checkpoint's tensors.
struct MappedTensors {
  mapping::Mapping mapping;
  mapping::Resolutions resolutions;
};

/// A checkpoint that is placed over many meshes: its headers are read and its mapping is chosen
/// once.
class ServedModel {
 public:
  /// Throws the errors of open_logical, dequantize, cast_values and choose_mapping; kUnsupported
  /// for a model whose passes have no price.
  ServedModel(const SearchedModel& searched, const SearchOptions& options);

  SpaceLimits limits() const { return limits_; }
  /// The model on one device, whether it fits or not.
  const PlacedReplica& whole() const { return *whole_; }
  /// Bytes of all tensors, each once.
  i64 bytes() const { return bytes_; }
  /// Places a replica. Throws the errors of mapping::resolve and of model::flow.
  std::unique_ptr<PlacedReplica> place(const ServingLayout& layout) const;
  /// Returns the layouts of the tensors on all devices, replicas included. Throws the errors of
  /// mapping::resolve.
  mapping::Resolution resolve(const ServingLayout& layout) const;
  /// Explains why not even an equal share of the weights fits a device; empty if it does.
  std::string too_small(const ServingLayout& layout) const;
  ReplicaMemory memory(const PlacedReplica& replica, const std::string& kv_dtype) const;
  /// Returns the workload of one sequence; its cache is half full of answers.
  model::ReplicaWorkload workload(const PlacedReplica& replica, const std::string& kv_dtype) const;
  const SearchedModel& searched() const { return searched_; }
  /// True if the cast of the model changes none of its tensors.
  bool is_as_stored() const;
  const LogicalCheckpoint& source() const { return source_; }
  const mapping::ModelConfig* config() const { return config_ ? &*config_ : nullptr; }
  std::vector<std::string> warnings() const { return source_.warnings(); }

 private:
  const MappedTensors& mapped_for(const ServingLayout& layout) const;
  SpaceLimits limits_of(const PlacedReplica& replica) const;

  const SearchOptions& options_;
  SearchedModel searched_;
  LogicalCheckpoint source_;
  MappingChoice choice_;
  std::optional<mapping::ModelConfig> config_;
  std::vector<TensorSpec> specs_;
  MappedTensors cut_;        ///< experts as the mapping cuts them
  MappedTensors over_tp_;    ///< whole experts over tp
  MappedTensors over_both_;  ///< whole experts over ep and tp
  SpaceLimits limits_;
  i64 bytes_ = 0;
  std::unique_ptr<PlacedReplica> whole_;
};

/// Returns what keeps a layout from being placed: "model" for a model that has no price on it,
/// "cut" for a mapping or a mesh; null for other errors.
const char* constraint_of(const Error& error);

}  // namespace shardtool::api
