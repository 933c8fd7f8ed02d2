#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolution.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

struct ResolveOptions {
  std::optional<mesh::Mesh> mesh;  ///< replaces the mapping's mesh
  std::string layout;              ///< an entry of "layouts"; empty: none
  bool require_even = false;       ///< refuse every uneven cut
  bool is_for_engine = false;      ///< refuse uneven cuts, except those by "uneven": "middle"
  bool allow_empty_shards = false;
  std::vector<std::pair<std::string, std::string>> settings;  ///< see with_settings
  /// If set, receives errors about single tensors and rules instead of throwing; those tensors are
  /// skipped. An error that one rule causes in many tensors is reported once.
  std::function<void(Error)> report;
};

/// Decides the layout of every tensor. `config` may be null if no size needs it. Throws kMesh,
/// kUnknownName, kNoRule, kAmbiguousRule, kUnusedRule, kAssertion, kShapeMismatch, kSizeExpression,
/// kConfig, kNotDivisible, kGroups, kEmptyShard, kMeshAxisReused, kBlockStraddle, kSubByteCut,
/// kStrategy, kTied, each with the tensor, the rule's place, and help.
Resolution resolve(const Mapping& mapping, std::span<const TensorSpec> tensors,
                   const ModelConfig* config, const ResolveOptions& options);

class Matches;

/// Resolves the same tensors over many meshes; names are matched once. `tensors` and `config` must
/// outlive it.
class Resolutions {
 public:
  /// The options are those of every resolution; their mesh is not read.
  Resolutions(const Mapping& mapping, std::span<const TensorSpec> tensors,
              const ModelConfig* config, ResolveOptions options);
  ~Resolutions();

  /// Returns what `resolve` returns over this mesh, and throws its errors. Several threads may call
  /// it at once.
  Resolution over(const mesh::Mesh& mesh) const;

 private:
  std::shared_ptr<Matches> matches_on(const ResolveOptions& options) const;

  Mapping mapping_;
  std::span<const TensorSpec> tensors_;
  const ModelConfig* config_;
  ResolveOptions options_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<Matches> matches_;  ///< after the first resolution; does not change then
};

}  // namespace shardtool::mapping
