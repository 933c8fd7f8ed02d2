#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lib/ops/body.h"
#include "lib/ops/decoder.h"
#include "lib/ops/operands.h"
#include "lib/ops/pricing.h"
#include "lib/ops/rules.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {

/// Computes an op on one device, one part per output.
template <class N>
using Body = std::vector<Part<N>> (*)(const OpAt<N>& at);

/// One body per number type.
struct Bodies {
  Body<Field> residues = nullptr;
  Body<double> doubles = nullptr;
  Body<float> floats = nullptr;

  template <class N>
  Body<N> of() const {
    if constexpr (is_field<N>) {
      return residues;
    } else if constexpr (std::is_same_v<N, double>) {
      return doubles;
    } else {
      return floats;
    }
  }
};

/// One row of the table of ops.
struct OpKind {
  std::string_view name;   ///< name in graph files
  std::string_view title;  ///< name in reports
  /// Reads the op's own fields.
  void (*decode)(OpDecoder& in);
  Operands operands;
  /// Returns the operands of an op, if its fields determine them; null: see `operands`.
  Operands (*inputs)(const Op& op);
  size_t (*outputs)(const Op& op);
  /// Throws kShapeMismatch if the op does not accept inputs of these widths; null: accepts all.
  void (*check)(const Op& op, const Widths& widths);
  /// Returns the legal placements along one mesh axis (rules.h).
  std::vector<plan::OpRow> (*rules)(const Op& op, const RuleSite& site);
  /// Follows the rules: moves inputs to the devices that need them, and returns the outputs.
  std::vector<Value> (*place)(Walk& walk, const BoundOp& bound);
  /// Adds the work and reads of one device.
  void (*price)(const Op& op, Pricing& pricing);
  /// Returns true if the op is a separate kernel launch.
  bool (*is_launched)(const Op& op);
  /// Null for products of streamed weights (linear, router, experts) and look-ups, whose weights
  /// the engine reads block by block.
  Bodies apply;
};

/// The table, one row per name.
std::span<const OpKind> op_table();
/// Returns the row of a name; null if there is none.
const OpKind* find_op(std::string_view name);

}  // namespace shardtool::ops
