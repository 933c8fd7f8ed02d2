#pragma once

#include <optional>
#include <vector>

#include "kernels/ops/router.h"
#include "lib/layout/strategy.h"
#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

/// Mixture of experts.
namespace shardtool::ops {

/// Scores of every expert, and the choice of top_k experts per token: by the scores, or by a stored
/// table [words, top_k] with the experts of every word (hash routing).
struct Router {
  using Kind = kernels::RouterSpec::Kind;
  Kind kind = Kind::kSoftmaxTopK;
  Dim experts, top_k, columns;
  Word renormalise;           ///< "true" or "false"
  Number scale{{}, 1};        ///< multiplies the weights
  Number groups, top_groups;  ///< only for kGroupMax and kSigmoidGroups; 0: one group
  Number least_sum;           ///< lower bound of the sum that renormalising divides by
  Number jitter;              ///< only for kSparseMixer
  std::optional<Dim> words;   ///< rows of the word table, which replaces a bias

  /// Returns true if the bias affects only the choice; otherwise it is added to the scores.
  bool is_corrected() const {
    return kind == Kind::kSigmoidGroups || kind == Kind::kCorrectedSoftmax ||
           kind == Kind::kCorrectedSigmoid || kind == Kind::kRootSoftplus;
  }
};
void decode(Router& op, OpDecoder& in);
void check(const Router& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Router& op, const RuleSite& site);
Value place(const Router& op, Walk& walk, const BoundOp& bound);
bool is_launched(const Router& op);

/// An activation of gate and up together (GPT-OSS).
inline constexpr std::string_view kPairActivation = "gpt_oss_glu";

/// Sum of the chosen experts' outputs times the router's weights. With scales_input the weights
/// multiply the experts' input instead. A form describes the tensors of the experts; the first form
/// whose tensors exist is used.
struct Experts {
  enum class Order { kSeparate, kStacked, kInterleaved, kUngated };
  struct Form {
    Order order = Order::kSeparate;  ///< order of gate and up; kUngated: the activation of up alone
    bool per_expert = true;          ///< one tensor per expert, with <expert> in its name
    /// Order of experts in a stack: one after another in the rows; else along a leading axis.
    bool in_rows = false;
    std::vector<WeightRef> weights;  ///< gate, up, down; or gate_up, down; or up, down; then biases
    std::vector<layout::Kernel> kernels;  ///< one per weight
  };
  Dim experts, top_k, embed, mlp;
  /// Number of choices of the router, if more than `experts`; the others contribute 0.
  std::optional<Dim> among;
  Word activation;  ///< of the gate alone, or kPairActivation
  Number limit;     ///< upper bound of gates, and bound of their factors; 0: none
  bool scales_input = false;
  std::vector<Form> forms;
};
void decode(Experts& op, OpDecoder& in);
void check(const Experts& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Experts& op, const RuleSite& site);
Value place(const Experts& op, Walk& walk, const BoundOp& bound);
void price(const Experts& op, Pricing& pricing);
bool is_launched(const Experts& op);

}  // namespace shardtool::ops
