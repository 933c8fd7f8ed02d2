#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/workbench.h"
#include "lib/engine/names.h"
#include "lib/engine/run/computed_by.h"
#include "lib/engine/run/fabric.h"
#include "lib/engine/run/part.h"
#include "lib/engine/run/product_list.h"
#include "lib/engine/side.h"
#include "lib/engine/weights/block_scales.h"

namespace shardtool::engine {

/// Returns true if an op chooses by scores: a router, or an attention with an index.
bool chooses(const ops::Op& op);

/// One side in one number system, one step of a layer after the other, on all devices of this
/// process in lockstep:
///
///     begin_layer
///       begin_step                     the moves of values that the op reads
///         begin, multiply..., end      of every product of the op, of each device in the order of
///                                      products_of; different devices' may be under way at once
///       end_step                       the op itself, and the moves of what it made
///
/// With an accelerator it computes there: multiply_there takes the place of multiply, and what
/// comes back has the same bits in the field. Instantiated for Field, double and float.
template <class N>
class Run {
 public:
  /// `accelerator` may be null: the CPU.
  Run(const Side& side, Fabric& fabric, const Inputs& inputs, kernels::Accelerator* accelerator)
      : side_(side), fabric_(fabric), inputs_(inputs), bench_(accelerator, inputs.cancel) {}

  /// `entry` is what this process' devices begin the layer with.
  void begin_layer(const model::Layer& layer, PlacedValues<N> entry, std::span<const i64> devices);
  void begin_step(const ops::Step& step);
  void begin(const Product& product);
  /// A block of the product's matrix: of all columns unless it is_in_out, where the rows come in
  /// their order. Blocks that give different outputs may run at once.
  void multiply(const Product& product, const MatrixBlock& block);
  /// The same of all columns, of which the accelerator has the first element at `there`. Returns
  /// before it is done. Of one product at a time.
  void multiply_there(const Product& product, const MatrixBlock& block, const std::byte* there);
  void end(const Product& product);
  void end_step(const ops::Step& step);

  bool has(const std::string& name) const { return values_.count(name) > 0; }
  const Placed<N>& value(const std::string& name) const { return values_.at(name); }

  /// The choices of routers and indices in this layer, by the name of their op's output; of floats.
  const std::map<std::string, Choice>& choices() const { return choices_; }
  /// Replaces the choices of routers and indices from now on. Null: by their scores.
  void replay(const std::map<std::string, Choice>* choices) { replayed_ = choices; }
  /// Choices so far that rounding could have made otherwise: the score of the last chosen expert or
  /// position is nearer to another's than kUndecidableGap.
  i64 undecidable() const { return undecidable_; }
  /// Counts of the accelerator's products so far.
  const ComputedBy& computed_by() const { return computed_by_; }

 private:
  OpAt<N> at(i64 rank);
  Choosing choosing();
  const Part<N>& input(size_t i, i64 rank) const;
  std::vector<i64> sum_group(i64 rank, const std::vector<i64>& holders) const;
  N share_of(i64 rank, const std::vector<i64>& holders) const;
  N share_of_bias(const ops::BoundWeight& weight, i64 rank) const;
  std::vector<i64> holders_of(const ops::BoundWeight& weight) const;
  void make(const std::string& name, i64 rank, Part<N> part);
  bool is_look_up(const Product& product) const;
  void embed_probe(const Product& product, Part<N>& x) const;
  void look_up(const Product& product, const MatrixBlock& block);
  i64 row_of_patch(const ops::Patches& patches, const Product& product, i64 token) const;
  void multiply_group(const Product& product, const MatrixBlock& block, i64 first_input);
  void multiply_scaled(const Product& product, const MatrixBlock& block, i64 first_input);
  void begin_there(const Product& product);
  bool is_for_library(const Product& product) const;
  void multiply_group_there(const Product& product, const MatrixBlock& block,
                            const std::byte* there, i64 first_input);
  void multiply_by_library(const Product& product, const MatrixBlock& block, const std::byte* there,
                           i64 first_input);
  void multiply_scaled_there(const Product& product, const MatrixBlock& block,
                             const std::byte* there, i64 first_input);
  void end_there(const Product& product);
  Part<N> expert_input(const Product& product);
  void end_expert(const Product& product, Part<N> y);
  std::vector<N> expert_bias(size_t weight, const Product& product, const index::AxisMap& features);
  void add_bias(const ops::BoundWeight& weight, i64 rank, Part<N>& part);
  void run_op(i64 rank);
  void route(const ops::Router& op, i64 rank);
  void round(const std::string& name);

  const Side& side_;
  Fabric& fabric_;
  const Inputs& inputs_;
  PlacedValues<N> values_;
  std::vector<i64> devices_;  ///< of this process, that run the layer
  std::vector<i64> all_devices_;
  i64 layer_ = -1;
  const ops::Step* step_ = nullptr;

  /// A product under way.
  struct Open {
    Part<N> x;  ///< its input, one column per row or column of its matrix
    Part<N> y;  ///< its output
    std::optional<BlockScales<N>> scales;
    const N* x_there = nullptr;               ///< on the accelerator
    std::vector<std::byte> stored;            ///< x in the weights' type, for a library
    const std::byte* stored_there = nullptr;  ///< instead of x_there
    N* y_there = nullptr;
    N* scaled_there = nullptr;  ///< room for x times the scales of blocks
  };
  std::map<i64, Open> open_;  ///< by device
  /// Gate and up of the experts under way, by device.
  std::map<i64, std::map<Product::Role, Part<N>>> expert_;
  kernels::Workbench bench_;
  ComputedBy computed_by_;

  std::map<std::string, Choice> choices_;
  const std::map<std::string, Choice>* replayed_ = nullptr;
  i64 undecidable_ = 0;
};

}  // namespace shardtool::engine
