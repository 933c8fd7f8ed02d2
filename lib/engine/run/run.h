#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/workbench.h"
#include "kernels/ops/router.h"
#include "lib/base/interruption.h"
#include "lib/engine/names.h"
#include "lib/engine/run/computed_by.h"
#include "lib/engine/run/fabric.h"
#include "lib/engine/run/memories.h"
#include "lib/engine/run/part.h"
#include "lib/engine/run/product_list.h"
#include "lib/engine/run/word_experts.h"
#include "lib/engine/side.h"
#include "lib/engine/weights/block_scales.h"
#include "lib/engine/weights/block_zeros.h"
#include "lib/mesh/rank_groups.h"

namespace shardtool::engine {

/// Returns true if an op selects by scores: a router, or an attention with an index.
bool chooses(const ops::Op& op);

/// Runs one side in one number system on all devices of this process, step by step:
///
///     begin_layer
///       begin_step                     exchanges of the values that the op reads
///         begin, multiply..., end      for every product of the op; on each device in the order of
///                                      products_of, on different devices possibly interleaved
///       end_step                       the op itself, and exchanges of its results
///       forget                         values that no later step reads
///
/// With an accelerator the products run there: call multiply_there instead of multiply. Values stay
/// there, too, between ops that can run there; other ops fetch them, which waits. In the field the
/// results have the same bits as on the CPU. Instantiated for Field, double and float.
template <class N>
class Run {
 public:
  Run(const Side& side, Fabric& fabric, const Inputs& inputs, const Memories& memories)
      : side_(side), fabric_(fabric), inputs_(inputs) {
    for (const auto& memory : memories) benches_.emplace_back(memory, interruption());
    if (memories.empty()) benches_.emplace_back(nullptr, interruption());
  }

  /// `entry` has the layer's inputs on the devices of this process.
  void begin_layer(const model::Layer& layer, PlacedValues<N> entry, std::span<const i64> devices);
  void begin_step(const ops::Step& step);
  /// `first` is the product itself, or an open product by the same bytes on another device. If the
  /// inputs have the same bits too, as those of FSDP ranks have, this product repeats it: its
  /// output is that of `first`, which must end after it.
  void begin(const MatrixProduct& product, const MatrixProduct& first);
  /// Returns true if an open product repeats another one, and needs no blocks.
  bool repeats(const MatrixProduct& product) const {
    return open_.at(product.rank).repeated.has_value();
  }
  /// Multiplies by a block of the product's matrix. The block has all columns, unless is_in_out;
  /// then blocks must come in the order of their rows. Calls for different outputs may run in
  /// parallel.
  void multiply(const MatrixProduct& product, const MatrixBlock& block);
  /// Like multiply, for a block of all columns whose first element is at `there` on the
  /// accelerator. Returns before the work is done.
  void multiply_there(const MatrixProduct& product, const MatrixBlock& block,
                      const std::byte* there);
  void end(const MatrixProduct& product);
  void end_step(const ops::Step& step);
  void forget(const std::string& name) { values_.erase(name); }

  bool has(const std::string& name) const { return values_.count(name) > 0; }
  const Placed<N>& value(const std::string& name) const { return values_.at(name); }

  /// The choices of routers and indices in this layer, by the name of their op's output. Empty in
  /// the field.
  const std::map<std::string, Choice>& choices() const { return choices_; }
  /// Replaces the choices of routers and indices in later steps. Null: choose by scores.
  void replay(const std::map<std::string, Choice>* choices) { replayed_ = choices; }
  /// Number of choices so far that rounding could change: the score of the last chosen expert or
  /// position is nearer to another one than kUndecidableGap.
  i64 undecidable() const { return undecidable_; }
  /// Number of products on the accelerator so far.
  const ComputedBy& computed_by() const { return computed_by_; }

 private:
  OpAt<N> at(i64 rank);
  kernels::Workbench& bench_of(i64 rank) {
    return benches_[static_cast<size_t>(rank) % benches_.size()];
  }
  Choosing choosing();
  const Part<N>& input(size_t i, i64 rank) const;
  std::vector<std::string> summed_axes() const;
  const mesh::RankGroups& adders(size_t tensor, i64 expert,
                                 const std::function<std::vector<i64>(i64 rank)>& experts_of);
  const mesh::RankGroups& adders_of(const ops::BoundWeight& weight);
  const mesh::RankGroups& adders_of_expert(size_t tensor, i64 expert);
  N share_of(i64 rank, const std::vector<i64>& adders) const;
  N share_of_bias(const ops::BoundWeight& weight, i64 rank);
  void make(const std::string& name, i64 rank, Part<N> part);
  bool is_look_up(const MatrixProduct& product) const;
  Part<N> product_input(const MatrixProduct& product);
  bool has_equal_operands(const MatrixProduct& product, const MatrixProduct& first) const;
  void embed_probe(const MatrixProduct& product, Part<N>& x) const;
  void look_up(const MatrixProduct& product, const MatrixBlock& block);
  i64 row_of_patch(const ops::Patches& patches, const MatrixProduct& product, i64 token) const;
  void multiply_group(const MatrixProduct& product, const MatrixBlock& block, i64 first_input);
  void multiply_scaled(const MatrixProduct& product, const MatrixBlock& block, i64 first_input);
  void begin_there(const MatrixProduct& product);
  bool is_for_library(const MatrixProduct& product) const;
  void multiply_group_there(const MatrixProduct& product, const MatrixBlock& block,
                            const std::byte* there, i64 first_input);
  void multiply_by_library(const MatrixProduct& product, const MatrixBlock& block,
                           const std::byte* there, i64 first_input);
  void multiply_scaled_there(const MatrixProduct& product, const MatrixBlock& block,
                             const std::byte* there, i64 first_input);
  void end_there(const MatrixProduct& product);
  Part<N> times_gates(const Part<N>& x, const MatrixProduct& product);
  void add_to_rows(const std::vector<N>& bias, i64 rank, Part<N>& part);
  Part<N> expert_input(const MatrixProduct& product);
  void end_expert(const MatrixProduct& product, Part<N> y);
  std::vector<N> expert_bias(size_t weight, const MatrixProduct& product,
                             const index::AxisMap& features);
  void add_bias(const ops::BoundWeight& weight, i64 rank, Part<N>& part);
  void run_op(i64 rank);
  void route(const ops::Router& op, i64 rank);
  std::vector<i64> experts_of_words(const WordExperts& of_words, const kernels::RouterSpec& spec,
                                    Choice& choice) const;
  void round(const std::string& name);
  void round_there(kernels::Workbench& bench, Part<N>& part);

  const Side& side_;
  Fabric& fabric_;
  const Inputs& inputs_;
  PlacedValues<N> values_;
  std::map<std::string, std::vector<i64>> distinct_;  ///< ranks with different parts of a value
  std::vector<i64> devices_;  ///< devices of this process that run the layer
  std::vector<i64> all_devices_;
  i64 layer_ = -1;
  const ops::Step* step_ = nullptr;
  /// Ranks that add a bias of the step to the same sum, by tensor and by expert; 0 without experts.
  /// Computed once, not by each rank, so that the time grows with the ranks and not their square.
  std::map<size_t, std::map<i64, mesh::RankGroups>> adders_;

  /// A product between begin and end.
  struct Open {
    Part<N> x;  ///< input, one column per input of the matrix
    Part<N> y;  ///< output
    std::optional<BlockScales<N>> scales;
    std::optional<BlockZeros<N>> zeros;  ///< unset also for a table that is looked up
    const N* x_there = nullptr;          ///< x on the accelerator
    kernels::Array<std::byte> stored;    ///< x in the weights' type, for a library
    /// X on the accelerator as `stored`; replaces x_there.
    const std::byte* stored_there = nullptr;
    N* y_there = nullptr;
    kernels::Array<N> scaled;  ///< x times the scales of a row of blocks
    N* scaled_there = nullptr;
    /// The device of the product that this one repeats; then the rest is empty.
    std::optional<i64> repeated;
  };
  std::map<i64, Open> open_;  ///< by device
  /// Gate and up of the open experts, by device.
  std::map<i64, std::map<MatrixProduct::Role, Part<N>>> expert_;
  std::deque<kernels::Workbench> benches_;  ///< by accelerator; one on the CPU
  ComputedBy computed_by_;

  std::map<std::string, Choice> choices_;
  const std::map<std::string, Choice>* replayed_ = nullptr;
  i64 undecidable_ = 0;
};

}  // namespace shardtool::engine
