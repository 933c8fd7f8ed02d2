#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/device/workbench.h"
#include "kernels/ops/activation.h"
#include "lib/index/region.h"
#include "lib/ops/bound_op.h"
#include "lib/ops/numbers.h"
#include "lib/ops/part.h"
#include "lib/ops/run_inputs.h"

/// The bodies of ops: apply() computes on one device, parts in and parts out, for ops that stream
/// no weights. Written once for residues and floats; instantiated for Field, double and float.
namespace shardtool::ops {

/// Choices of routers and indices: `top_k` numbers per token, best first for routers. -1 leaves the
/// choice to the reader's scores.
using Choice = std::vector<i64>;

/// Twice the error of f64 for scores near 1.
inline constexpr double kUndecidableGap = 2e-10;

/// The input and output of a choice.
struct Choosing {
  const Choice* replayed = nullptr;  ///< null: choose by scores
  Choice* chosen = nullptr;
  i64* undecidable = nullptr;  ///< counts choices that rounding could change
};

/// A device's part of a weight with few elements, as it is stored.
struct StoredWeight {
  index::Region region;
  Dtype dtype = Dtype::kF32;
  std::vector<std::byte> bytes;
};
/// A StoredWeight converted to numbers, row-major.
template <class N>
struct SmallWeight {
  index::Region region;
  std::vector<N> data;
};

/// Reads weights for the bodies of ops.
class WeightReader {
 public:
  virtual ~WeightReader() = default;
  virtual const std::string& name(size_t tensor) const = 0;
  /// Returns the device's part of a tensor. Throws kUnsupported if it has none.
  virtual index::Region region(size_t tensor, i64 rank) const = 0;
  /// Throws kUnsupported for a packed weight, and what reading throws.
  virtual StoredWeight read(size_t tensor, i64 rank) const = 0;
};

/// One op on one device. Bodies throw kUnsupported if a device lacks features that it needs, and
/// for a word in the graph or in config.json that they do not know; kConfig for a value there that
/// cannot be used; and an attention kInterrupted once it is interrupted.
template <class N>
struct OpAt {
  const ModelSizes& model;
  const WeightReader& weights;
  const Inputs& inputs;
  const BoundOp& op;
  i64 layer = -1;
  i64 rank = 0;
  kernels::Workbench& bench;  ///< runs norms, rotations, attention and activations
  std::vector<const Part<N>*> in;
  bool is_summed = false;  ///< results of several devices are summed
  Choosing choosing = {};  ///< for an attention with an index; floats only
};

/// Converts the elements; `map` counts for residues only.
template <class N>
SmallWeight<N> numbers_of(StoredWeight stored, kernels::NumberMap map);

/// Reads a device's part of a weight, and converts it.
template <class N>
SmallWeight<N> load_small(const WeightReader& weights, kernels::NumberMap map, size_t tensor,
                          i64 rank);

/// Reads a vector, one number per feature, and returns the numbers of `features`, with zeros for
/// padding. The vector is the tensor's last axis; axes before it have extent 1.
template <class N>
std::vector<N> load_vector(const OpAt<N>& at, size_t tensor, const index::AxisMap& features);

/// Reads a weight with `unit` numbers for every feature or head of a value, which features_axis()
/// counts, and returns the numbers of `features`, with zeros for padding.
template <class N>
std::vector<N> load_rows(const OpAt<N>& at, size_t weight, const index::AxisMap& features,
                         i64 unit);

/// Returns the device's part of the axis of a weight that counts features.
template <class N>
index::AxisMap features_of(const OpAt<N>& at, size_t weight);

/// Returns the features that the device computes: those of the first input, or those of a weight
/// if it has fewer on this device. A weight has one number per `unit` features.
template <class N>
index::AxisMap features_with_weights(const OpAt<N>& at, i64 unit = 1);

bool has_weight(const BoundOp& op, size_t which);

/// Returns, for every head of `heads` except padding, the index of its shared head among those that
/// the device has of an operand: head h uses head h / shared. Throws kUnsupported if it lacks one.
template <class N>
std::vector<i64> places_of_shared(const OpAt<N>& at, const index::AxisMap& heads, i64 shared,
                                  size_t operand, i64 unit);

/// Returns the function for a word of the graph or of config.json. Throws kUnsupported.
kernels::ActivationKind activation_of(const Word& word, const mapping::ModelConfig& config);

/// Returns true if both are features of values of one width, and `other` has fewer than `one`.
bool is_narrower(const index::AxisMap& one, const index::AxisMap& other);

/// Returns the units (heads, sections of a head) of a value on a device; each has `unit` features.
/// Throws kUnsupported, naming `what`, if a cut is inside one.
index::AxisMap units_of(const index::AxisMap& features, i64 unit, const std::string& what);

/// Applies a function to every number of the first input.
template <class N, class Function>
Part<N> each(const OpAt<N>& at, const Function& function) {
  Part<N> y = *at.in[0];
  for (N& x : y.data) x = function(x);
  return y;
}

}  // namespace shardtool::ops

/// Instantiates the body of an op for one number type, and for all of them.
#define SHARDTOOL_BODY_FOR(Op, N) \
  template decltype(apply(Op(), std::declval<const OpAt<N>&>())) apply(const Op&, const OpAt<N>&);
#define SHARDTOOL_BODY(Op)               \
  SHARDTOOL_BODY_FOR(Op, kernels::Field) \
  SHARDTOOL_BODY_FOR(Op, double)         \
  SHARDTOOL_BODY_FOR(Op, float)
