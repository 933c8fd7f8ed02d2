#pragma once

#include <string>
#include <vector>

#include "kernels/device/workbench.h"
#include "kernels/ops/activation.h"
#include "lib/engine/run/part.h"
#include "lib/engine/side.h"

/// What one device computes in ops that stream no weights: parts in, parts out. Written once for
/// residues and floats; instantiated for Field, double and float.
namespace shardtool::engine {

/// What routers and indices chose: `top_k` numbers per token, best first; of an index in any order.
/// -1 stands for what the scores of whoever reads it say.
using Choice = std::vector<i64>;

/// Twice what f64 may differ by, of scores about 1.
inline constexpr double kUndecidableGap = 2e-10;

/// How an op chooses, and what it chose.
struct Choosing {
  const Choice* replayed = nullptr;  ///< null: by its scores
  Choice* chosen = nullptr;
  i64* undecidable = nullptr;  ///< counts choices that rounding could have made otherwise
};

/// One op on one device.
template <class N>
struct OpAt {
  const Side& side;
  const Inputs& inputs;
  const model::BoundOp& op;
  i64 layer = -1;
  i64 rank = 0;
  kernels::Workbench& bench;  ///< where norms, rotations, attention and activations run
  std::vector<const Part<N>*> in;
  bool is_summed = false;  ///< what the devices compute is added up
  Choosing choosing = {};  ///< of an attention with an index, in floats
};

/// A weight whose elements are few, as numbers: what the device has of it.
template <class N>
struct SmallWeight {
  index::Region region;
  std::vector<N> data;  ///< row-major
};
/// Throws kUnsupported for a packed one.
struct StoredWeight {
  index::Region region;
  Dtype dtype = Dtype::kF32;
  std::vector<std::byte> bytes;
};
StoredWeight read_small(const Side& side, size_t tensor, i64 rank);
template <class N>
SmallWeight<N> load_small(const Side& side, kernels::NumberMap map, size_t tensor, i64 rank);

/// The elements of a vector (its last axis; those before it have one index) that belong to
/// `features`, one per feature, zeros for padding.
template <class N>
std::vector<N> load_vector(const OpAt<N>& at, size_t tensor, const index::AxisMap& features);

/// One part per output. Attention, which takes long, ends between two tokens with kInterrupted when
/// the inputs' flag is up. Throws kUnsupported where a device lacks what it computes with, and for
/// what the graph asks for and the engine does not know; kConfig.
template <class N>
std::vector<Part<N>> apply(const model::Split& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Given& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Sinusoids& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::ConvolveFrames& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Merge& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Insert& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::ClassToken& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Join& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Norm& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Rope& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::PositionBias& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::BucketScores& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Attention& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Sums& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Normalise& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Resize& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Cutoff& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Mix& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Balance& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::OfLayer& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Convolve& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Pool& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::StepSize& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Decay& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Fade& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Recurrence& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Activation& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Xielu& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Multiply& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Add& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Scale& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Shift& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Temper& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Clamp& op, const OpAt<N>& at);
template <class N>
Part<N> apply(const model::Softcap& op, const OpAt<N>& at);

/// Of one of the op's weights, `unit` numbers for each of a value's features or heads
/// (model::features_axis): those of `features`, zeros for padding.
template <class N>
std::vector<N> load_rows(const OpAt<N>& at, size_t weight, const index::AxisMap& features,
                         i64 unit);

/// For every head of `heads` that is none of padding, where its shared head is among those that the
/// device has of an operand: head h has that of h / shared. Throws kUnsupported where it lacks one.
template <class N>
std::vector<i64> places_of_shared(const OpAt<N>& at, const index::AxisMap& heads, i64 shared,
                                  size_t operand, i64 unit);

/// The function that a word of the graph or of config.json names. Throws kUnsupported.
kernels::ActivationKind activation_of(const model::Word& word, const mapping::ModelConfig& config);

/// Whether the device computes by the second of two maps of a value: it has fewer features of a
/// value as wide.
bool is_narrower(const index::AxisMap& one, const index::AxisMap& other);

/// The units (heads, a head's sections) that a device has of a value; every unit is `unit`
/// features. Throws kUnsupported, naming `what`, when a cut falls inside one.
index::AxisMap units_of(const index::AxisMap& features, i64 unit, const std::string& what);

/// Where the parts of a fused axis are: per section, for every local index of the section, the
/// local index in `fused`; and the section's map.
struct Section {
  index::AxisMap features;
  std::vector<i64> from;
};
std::vector<Section> sections_of(model::Split::Order order, const index::AxisMap& fused,
                                 const std::vector<i64>& sizes, const std::string& what);

}  // namespace shardtool::engine
