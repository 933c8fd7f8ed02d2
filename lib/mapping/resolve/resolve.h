#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/tensor_spec.h"
#include "lib/layout/layout.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/value_shifts.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

struct ResolveOptions {
  std::optional<mesh::Mesh> mesh;  ///< replaces the mapping's mesh
  std::optional<i64> devices;      ///< fills "size": "auto"; must equal the mesh otherwise
  std::string layout;              ///< an entry of "layouts", or empty
  bool require_even = false;       ///< refuse every uneven cut
  bool allow_empty_shards = false;
  std::vector<std::pair<std::string, std::string>> settings;  ///< see with_settings
  /// When set, is told of errors about single tensors and rules instead of a throw; the tensors are
  /// left out. One rule that does not fit many tensors alike is told once.
  std::function<void(Error)> report;
};

/// What decided a tensor, and what it says beside the layout.
struct TensorDecision {
  std::string rule;  ///< "q", "preset:llama#q", "rules/3", "companions/0", or "unknown"
  Place rule_place;
  std::string strategy;   ///< the strategy's name, "dims", or the companion's kind
  std::string bias = {};  ///< a bias of a sum: how it is added once; else empty
  std::vector<std::string> transforms =
      {};  ///< "pad axis 0 'vocab' from 50257 to 50304 with zeros"
  std::vector<index::ValueShift> shifts = {};  ///< per device of the layout; empty: plain values
  /// The layers that the rule holds in, "\"layer_types\" says \"full_attention\""; empty: all.
  std::string where = {};
  bool is_scale = false;  ///< of a companion that does not lead: scales, zeros, indices of groups
};

/// What was decided for one tensor. Tensors with the same cut share both.
struct ResolvedTensor {
  size_t tensor = 0;  ///< index into the specs
  std::shared_ptr<const layout::Layout> layout;
  std::shared_ptr<const TensorDecision> by;
};

/// One sentence for people: the rule, its place, and the cut of every axis that is cut.
std::string why(const ResolvedTensor& tensor);

/// Units of an axis that were not dealt out in equal numbers.
struct UnevenCut {
  std::string axis;
  std::vector<i64> sizes;  ///< per part
  std::string example_tensor;
  i64 tensors = 0;
};

/// A mapping applied to a checkpoint.
struct Resolution {
  mesh::Mesh mesh;
  std::vector<ResolvedTensor> tensors;         ///< in the order of the specs, dropped ones absent
  std::vector<size_t> dropped;                 ///< indices into the specs
  std::vector<std::vector<std::string>> tied;  ///< groups of which two or more names are present
  std::vector<UnevenCut> uneven;
  /// Axes of one's own that no rule names, a mapping for other models, layers or experts that
  /// config.json counts otherwise than the tensors' names do, axes of a mesh from the command line
  /// that cut nothing, and tensors that "unknown" replicates.
  std::vector<std::string> warnings;
  std::map<std::string, i64> axis_sizes;  ///< declared ones that a rule needed
};

/// Decides the layout of every tensor. `config` may be null when no size reads it.
/// Throws kMesh, kUnknownName, kNoRule, kAmbiguousRule, kUnusedRule, kAssertion, kShapeMismatch,
/// kSizeExpression, kConfig, kNotDivisible, kGroups, kEmptyShard, kMeshAxisReused, kBlockStraddle,
/// kSubByteCut, kStrategy, kTied: each with the tensor, the rule's place, and the fix.
Resolution resolve(const Mapping& mapping, std::span<const TensorSpec> tensors,
                   const ModelConfig* config, const ResolveOptions& options);

/// Haliax's physical_axis_size: the number of devices along `over`, 1 when it is empty.
i64 physical_axis_size(const mesh::Mesh& mesh, const mesh::Over& over);
/// Haliax's round_axis_for_partitioning: `size` rounded up to a multiple of physical_axis_size.
i64 round_axis_for_partitioning(i64 size, const mesh::Mesh& mesh, const mesh::Over& over);

}  // namespace shardtool::mapping
