#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardtool/engine/compare.h"
#include "shardtool/engine/run.h"
#include "shardtool/engine/verdict.h"
#include "shardtool/model/flow.h"

namespace shardtool::engine {

/// One layer of both sides: the steps are in the same order, the values have the same names.
struct LayerPair {
  const model::Layer* whole = nullptr;
  const model::Layer* shards = nullptr;
  model::LayerFlow whole_flow, shards_flow;  ///< the shards' with the hand-off to the next stage
  model::Value entry;                        ///< how the layer's input lies on the shards' devices
  std::span<const i64> devices;

  std::string name() const;
  /// The value that the layer is there to make.
  const std::string& result() const;
};

/// Both sides in one number system.
template <class N>
class Tier {
 public:
  /// `accelerator` may be null: the CPU.
  Tier(std::string name, const Side& whole, const Side& shards, comm::Communicator* comm,
       Inputs inputs, double tolerance, kernels::Accelerator* accelerator);

  void begin_layer(const LayerPair& layer, size_t index);
  void begin_step(size_t step);
  Run<N>& run(bool of_shards) { return of_shards ? shards_run_ : whole_run_; }
  /// Completes the step on both sides and compares what it made.
  void end_step(size_t step);
  void end_layer();

  TierVerdict& verdict() { return verdict_; }
  /// What the layer made: the whole model, and the shards by device.
  const Part<N>& whole_result() const { return whole_result_; }
  const Placed<N>& shards_result() const { return shards_result_; }
  /// The next layer's input, instead of what was made in this number system.
  void carry(Part<N> x) {
    carried_ = std::move(x);
    hands_on_made_ = false;
  }
  const Counts& counts() const { return fabric_.counts(); }
  std::uint64_t digest() const { return digest_; }
  const Run<N>& whole() const { return whole_run_; }

 private:
  /// What one output of one step was like.
  struct Event {
    size_t step = 0;
    size_t output = 0;
    Difference difference;
  };

  Part<N> layer_input() const;
  void hand_over(const LayerPair& before, const Part<N>& x, Placed<N>& entry);
  void compare_output(const model::Step& whole_step, const model::Step& shards_step, size_t step,
                      size_t output);
  void add_fault(const Event& first, i64 mismatches);
  void add_handoff_fault(const LayerPair& before, const Difference& found);

  Inputs inputs_;
  const Side& whole_;
  const Side& shards_;
  Fabric whole_fabric_, fabric_;
  Run<N> whole_run_, shards_run_;
  double tolerance_;
  const LayerPair* layer_ = nullptr;
  size_t layer_index_ = 0;
  std::vector<Event> events_;
  Part<N> carried_;             ///< what the whole model made of the layer before
  bool hands_on_made_ = false;  ///< what the shards of this process made of it is right
  Part<N> whole_result_;
  Placed<N> shards_result_;
  std::map<std::string, Choice> choices_;
  TierVerdict verdict_;
  std::uint64_t digest_ = 0;
};

/// "linear", "attention", ...
std::string_view name_of(const model::Op& op);

}  // namespace shardtool::engine
