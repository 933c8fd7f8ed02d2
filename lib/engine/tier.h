#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/engine/diagnosis/compare.h"
#include "lib/engine/diagnosis/layer_pair.h"
#include "lib/engine/diagnosis/verdict.h"
#include "lib/engine/run/reference.h"
#include "lib/engine/run/run.h"

namespace shardtool::engine {

/// What decides whether shards are right.
enum class Standard {
  kWhole,  ///< what the whole model makes on one device, within a tolerance
  kBits,   ///< every bit that the whole model's cut makes on the same devices
};

/// Both sides in one number system. The reference is the whole model, or by kBits its CutSide: then
/// every device is held against its own counterpart, and what differs is told and no failure, since
/// shards in another order compute the same function with other roundings. Floats have the same
/// bits in any number of threads and processes and on every CPU's kernels, as far as the C
/// library's exp, sin and cos give the same bits in all processes: those of one machine do.
template <class N>
class Tier {
 public:
  /// `accelerator` may be null: the CPU; by kBits it is.
  Tier(TierKind kind, Standard standard, const Side& reference, const Side& shards,
       comm::Communicator* comm, Inputs inputs, double tolerance,
       kernels::Accelerator* accelerator);

  void begin_layer(const LayerPair& layer, size_t index);
  void begin_step(size_t step);
  /// A product of the shards, or of the whole model, and blocks of its matrix: see Run.
  void begin(bool of_shards, const Product& product);
  void multiply(bool of_shards, const Product& product, const MatrixBlock& block);
  /// Whether multiply_there takes the place of multiply.
  bool computes_there() const { return accelerator_ != nullptr; }
  void multiply_there(bool of_shards, const Product& product, const MatrixBlock& block,
                      const std::byte* there);
  void end(bool of_shards, const Product& product);
  /// Completes the step on both sides and compares what it made.
  void end_step(size_t step);
  void end_layer();

  TierVerdict& verdict() { return verdict_; }
  /// What the layer made of all that it passes: the reference, and the shards by device.
  const Wholes<N>& whole_results() const { return whole_results_; }
  const PlacedValues<N>& shards_results() const { return shards_results_; }
  /// What later layers read, instead of what was made in this number system.
  void carry(const std::string& name, Part<N> value) {
    whole_results_.at(name) = std::move(value);
    hands_on_made_ = false;
  }
  const Counts& counts() const { return fabric_.counts(); }
  static constexpr i64 kNumberBytes = sizeof(N);  ///< of every number that is moved
  i64 rows() const { return inputs_.rows(); }
  std::uint64_t digest() const { return digest_; }
  const Run<N>& reference() const { return reference_.run(); }
  /// The accelerator's products, of both sides.
  ComputedBy computed_by() const {
    ComputedBy both = reference_.run().computed_by();
    return both += shards_run_.computed_by();
  }

 private:
  /// What one output of one step was like.
  struct Event {
    size_t step = 0;
    size_t output = 0;
    Difference difference;
  };

  const SideLayer& reference_layer() const;
  Outcome of_fault() const;
  Part<N> layer_input(const std::string& name) const;
  void hand_over(const LayerPair& before, const Wholes<N>& values, PlacedValues<N>& entry);
  void compare_output(size_t step, size_t output);
  Difference compare_with(const Placed<N>& expected, size_t step, size_t output, Placed<N>& parts);
  void add_fault(const Event& first, i64 mismatches);
  Difference result() const;
  void add_handoff_fault(const LayerPair& before, const std::string& value,
                         const Difference& found);

  Inputs inputs_;
  Standard standard_;
  const Side& shards_;
  Fabric fabric_;
  kernels::Accelerator* accelerator_;
  Reference<N> reference_;  ///< of the first process
  Run<N> shards_run_;
  double tolerance_;
  const LayerPair* layer_ = nullptr;
  size_t layer_index_ = 0;
  std::vector<Event> events_;
  Wholes<N> carried_;           ///< what the reference made in the layers before
  bool hands_on_made_ = false;  ///< what the shards of this process made in the last is right
  Wholes<N> whole_results_;
  PlacedValues<N> shards_results_;
  std::map<std::string, Choice> choices_;
  TierVerdict verdict_;
  std::uint64_t digest_ = 0;
};

}  // namespace shardtool::engine
