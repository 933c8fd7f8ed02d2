#pragma once

#include <optional>
#include <vector>

#include "kernels/ops/router.h"
#include "lib/layout/strategy.h"
#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

/// Mixture of experts.
namespace shardtool::ops {

/// Scores of every expert, of which top_k are chosen: by the scores, or by a stored table that
/// names the experts of every word, [words, top_k] (hash routing).
struct Router {
  using Kind = kernels::RouterSpec::Kind;
  Kind kind = Kind::kSoftmaxTopK;
  Dim experts, top_k, columns;
  Word renormalise;           ///< "true" or "false"
  Number scale{{}, 1};        ///< of the weights
  Number groups, top_groups;  ///< of kGroupMax and kSigmoidGroups; 0: one group
  Number least_sum;           ///< renormalising divides by this or more
  Number jitter;              ///< of kSparseMixer
  std::optional<Dim> words;   ///< of the table, which takes the place of a bias

  /// Returns true if the bias only takes part in choosing; else it is added to the scores.
  bool is_corrected() const {
    return kind == Kind::kSigmoidGroups || kind == Kind::kCorrectedSoftmax ||
           kind == Kind::kCorrectedSigmoid || kind == Kind::kRootSoftplus;
  }
};
void decode(Router& op, OpDecoder& in);
void check(const Router& op, const Widths& widths);
Value place(const Router& op, Walk& walk, const BoundOp& bound);
bool is_launched(const Router& op);

/// The sum of the chosen experts' outputs times the router's weights. With scales_input the weights
/// are factors of the experts' input. A form describes the tensors of the experts; the first form
/// whose tensors the checkpoint has counts.
struct Experts {
  enum class Order { kSeparate, kStacked, kInterleaved, kUngated };
  struct Form {
    Order order = Order::kSeparate;  ///< of gate and up; kUngated: the activation of up alone
    bool per_expert = true;          ///< one tensor per expert, with <expert> in its name
    bool in_rows = false;            ///< stacks: experts follow each other in the rows; else a
                                     ///< leading axis counts experts
    std::vector<WeightRef> weights;  ///< gate, up, down; or gate_up, down; or up, down; then biases
    std::vector<layout::Kernel> kernels;  ///< of each of the weights
  };
  Dim experts, top_k, embed, mlp;
  std::optional<Dim> among;  ///< the number that top_k are chosen from, if more than `experts`; the
                             ///< others compute nothing
  Word activation;
  Number limit;  ///< upper bound of gates, and bound of what they multiply; 0: none
  bool scales_input = false;
  std::vector<Form> forms;
};
void decode(Experts& op, OpDecoder& in);
void check(const Experts& op, const Widths& widths);
Value place(const Experts& op, Walk& walk, const BoundOp& bound);
void price(const Experts& op, Pricing& pricing);
bool is_launched(const Experts& op);

}  // namespace shardtool::ops
