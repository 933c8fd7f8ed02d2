#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/engine/diagnosis/compare.h"
#include "lib/engine/diagnosis/layer_pair.h"
#include "lib/engine/diagnosis/verdict.h"
#include "lib/engine/run/reference.h"
#include "lib/engine/run/run.h"

namespace shardtool::engine {

/// The values that shards must have to be correct.
enum class Standard {
  kWhole,  ///< the whole model's on one device, within a tolerance
  kBits,   ///< those of the whole model cut over the same devices, with equal bits
};

/// Runs and compares both sides in one number system. The reference is the whole model or, with
/// kBits, its CutSide. Then every device is compared with the same device of the cut, and a
/// difference is reported but is no failure: shards that add in another order compute the same
/// function with other rounding. The bits of floats do not depend on the number of threads or
/// processes or on the CPU's kernels, provided that the C library's exp, sin and cos agree in all
/// processes, as they do on one machine.
template <class N>
class Tier {
 public:
  /// `memories` must be empty with kBits.
  Tier(TierKind kind, Standard standard, const Side& reference, const Side& shards,
       comm::Communicator* comm, Inputs inputs, double tolerance, const Memories& memories);

  /// Notes the layer before the first one, for a run that begins in the middle of the model.
  void begin_behind(const LayerPair& before) { layer_ = &before; }
  void begin_layer(const LayerPair& layer, size_t index);
  void begin_step(size_t step);
  /// As begin, multiply, multiply_there and end of Run, on the shards or on the reference.
  void begin(bool of_shards, const MatrixProduct& product, const MatrixProduct& first);
  /// Returns true if a product needs multiply().
  bool computes_here(bool of_shards, const MatrixProduct& product) const {
    return !computes_there() && !(of_shards && shards_run_.repeats(product));
  }
  void multiply(bool of_shards, const MatrixProduct& product, const MatrixBlock& block);
  /// Returns true if multiply_there replaces multiply.
  bool computes_there() const { return bench_.is_parallel(); }
  void multiply_there(bool of_shards, const MatrixProduct& product, const MatrixBlock& block,
                      const std::byte* there);
  void end(bool of_shards, const MatrixProduct& product);
  /// Completes the step on both sides and compares its results.
  void end_step(size_t step);
  void end_layer();

  TierVerdict& verdict() { return verdict_; }
  /// Results of the layer: of the reference, and of the shards by device.
  const Wholes<N>& whole_results() const { return whole_results_; }
  const PlacedValues<N>& shards_results() const { return shards_results_; }
  /// Replaces a result by `value` for later layers.
  void carry(const std::string& name, Part<N> value) {
    whole_results_.at(name) = std::move(value);
    hands_on_made_ = false;
  }
  const Counts& counts() const { return fabric_.counts(); }
  /// Bytes of a number as this move sends it.
  i64 number_bytes(plan::Move move) const { return fabric_.template number_bytes<N>(move); }
  i64 rows() const { return inputs_.rows(); }
  std::uint64_t digest() const { return digest_; }
  const Run<N>& reference() const { return reference_.run(); }
  /// Number of the accelerator's products, on both sides.
  ComputedBy computed_by() const {
    ComputedBy both = reference_.run().computed_by();
    return both += shards_run_.computed_by();
  }

 private:
  /// Comparison of one output of one step.
  struct Event {
    size_t step = 0;
    size_t output = 0;
    ValueDifference difference;
    /// Set until the comparison on the accelerator is fetched.
    std::optional<PendingComparison<N>> pending;
  };

  const SideLayer& reference_layer() const;
  Outcome of_fault() const;
  Part<N> layer_input(const std::string& name, i64 width) const;
  Part<N> random_input(const std::string& name, i64 width) const;
  void hand_over(const LayerPair& before, const Wholes<N>& values, PlacedValues<N>& entry);
  void compare_output(size_t step, size_t output);
  void compare_with(const Placed<N>& expected, Placed<N>& parts, Event& event);
  void fetch_events();
  void forget_values(size_t step);
  void add_fault(const Event& first, i64 mismatches);
  ValueDifference result() const;
  void add_handoff_fault(const LayerPair& before, const std::string& value,
                         const ValueDifference& found);

  Inputs inputs_;
  Standard standard_;
  const Side& shards_;
  Fabric fabric_;
  kernels::Workbench bench_;  ///< compares
  Reference<N> reference_;    ///< used by the first process
  Run<N> shards_run_;
  double tolerance_;
  const LayerPair* layer_ = nullptr;
  size_t layer_index_ = 0;
  std::vector<Event> events_;
  std::map<std::string, size_t> last_uses_;  ///< steps by the names of the layer's values
  Wholes<N> carried_;                        ///< the reference's results from earlier layers
  bool hands_on_made_ = false;  ///< the last layer's results on this process' shards are correct
  Wholes<N> whole_results_;
  PlacedValues<N> shards_results_;
  std::map<std::string, Choice> choices_;
  TierVerdict verdict_;
  std::uint64_t digest_ = 0;
};

}  // namespace shardtool::engine
