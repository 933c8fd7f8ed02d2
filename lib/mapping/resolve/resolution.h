#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/layout/layout.h"
#include "lib/mapping/resolve/value_shifts.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

/// The decision for a tensor beside its layout, and its reason.
struct TensorDecision {
  std::string rule;  ///< "q", "preset:llama#q", "rules/3", "companions/0", or "unknown"
  Place rule_place;
  std::string strategy;   ///< the strategy's name, "dims", or the kind of companion
  std::string bias = {};  ///< for a bias of a sum: how it is added once; else empty
  std::vector<std::string> transforms =
      {};  ///< "pad axis 0 'vocab' from 50257 to 50304 with zeros"
  /// Per device of the layout; empty: values are unchanged.
  std::vector<index::ValueShift> shifts = {};
  /// The layers in which the rule holds, "\"layer_types\" says \"full_attention\""; empty: all.
  std::string where = {};
  bool is_scale = false;  ///< scales, zeros or group indices: a companion that does not lead
  /// Names of the sections of the axis that has several, "q", "k", "v"; empty: not known.
  std::vector<std::string> sections = {};
};

/// The decision for one tensor. Tensors with the same cut share both pointers, also those that
/// differ in numbers of layers or experts whose devices are the same.
struct ResolvedTensor {
  size_t tensor = 0;  ///< index into the specs
  std::shared_ptr<const layout::Layout> layout;
  std::shared_ptr<const TensorDecision> by;
  /// The tensor's own numbers on the first index axes of its layout, which has those of another.
  std::vector<i64> numbers = {};
};

/// Returns the index axes of the tensor's layout, with its own numbers.
std::vector<layout::IndexAxis> index_axes(const ResolvedTensor& tensor);

/// Explains the layout in one sentence: the rule, its place, and the cut of every axis that is cut.
std::string why(const ResolvedTensor& tensor);

/// The units of an axis, and how many of them a cut keeps together.
struct UnitRuns {
  i64 units = 0;
  i64 together = 1;
};

/// An axis whose units were distributed unevenly.
struct UnevenCut {
  std::string axis;
  std::vector<i64> sizes;  ///< units per part
  std::string example_tensor;
  i64 tensors = 0;
  UnitRuns units = {};  ///< of the axis; fewer than the sum of sizes if parts share some
};

/// The layouts of all tensors of a checkpoint under a mapping.
struct Resolution {
  mesh::Mesh mesh;
  /// Mesh axes of role "fsdp": devices gather weights along them before they compute.
  std::vector<std::string> gathered;
  std::vector<ResolvedTensor> tensors;         ///< in the order of the specs, without dropped ones
  std::vector<size_t> dropped;                 ///< indices into the specs
  std::vector<std::vector<std::string>> tied;  ///< groups with at least two present names
  std::vector<UnevenCut> uneven;
  /// Warnings about: axes in a user's document that no rule names; a mapping for other models;
  /// numbers of layers or experts in config.json that differ from the tensors' names; mesh axes
  /// from the command line along which no tensor is cut; and tensors replicated by "unknown".
  std::vector<std::string> warnings;
  std::map<std::string, i64> axis_sizes;  ///< declared sizes that some rule used
};

/// Returns the layouts that devices compute with, in the order of the resolution's tensors: its
/// own, gathered along the axes of role "fsdp". Equal layouts stay shared. Throws kUnsupported.
std::vector<std::shared_ptr<const layout::Layout>> computed_layouts(const Resolution& resolution);

}  // namespace shardtool::mapping
