#include "lib/ops/experts/experts.h"

#include <fmt/format.h>

#include <cmath>

#include "lib/ops/decoder.h"
#include "lib/ops/mesh_cuts.h"
#include "lib/ops/pricing.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {
namespace {

using layout::Layout;
using plan::Move;
using plan::Placement;

Experts::Form decode_form(OpDecoder& in, const JsonValue& value) {
  Experts::Form form;
  layout::Kernel of_all = layout::Kernel::kOutIn;
  std::vector<std::optional<layout::Kernel>> own;
  value.object(
      {{"order",
        [&](const JsonValue& v) {
          form.order = v.one_of<Experts::Order>({{"separate", Experts::Order::kSeparate},
                                                 {"stacked", Experts::Order::kStacked},
                                                 {"interleaved", Experts::Order::kInterleaved},
                                                 {"ungated", Experts::Order::kUngated}});
        },
        true},
       {"per_expert", [&](const JsonValue& v) { form.per_expert = v.boolean(); }, true},
       in.flag("in_rows", form.in_rows),
       in.kernel(of_all),
       {"weights",
        [&](const JsonValue& v) {
          for (const JsonValue& one : v.elements(2)) {
            WeightRef ref;
            std::vector<Dim> shape;
            layout::Kernel stored = layout::Kernel::kOutIn;
            one.object({{"name", [&](const JsonValue& n) { ref = in.names(n); }, true},
                        {"shape", [&](const JsonValue& s) { shape = decode_dims(s); }, true},
                        in.kernel(stored)});
            ref.shape = std::move(shape);
            own.push_back(one.has("kernel") ? std::optional(stored) : std::nullopt);
            form.weights.push_back(std::move(ref));
          }
        },
        true}});
  const size_t matrices = form.order == Experts::Order::kSeparate ? 3 : 2;
  if (form.weights.size() != matrices && form.weights.size() != 2 * matrices) {
    value.refuse(fmt::format("a form of {} weights, or of these and their biases", matrices));
  }
  if (form.per_expert && form.in_rows) value.refuse("a stack where experts are in rows");
  for (const auto& stored : own) form.kernels.push_back(stored.value_or(of_all));
  return form;
}

/// Returns the mesh axes that cut any stored axis, or that distribute the tensors.
std::vector<bool> cut_at_all(const Walk& walk, const BoundWeight& weight) {
  std::vector<bool> cut = dealt_by(walk.mesh(), weight, walk.layouts());
  const Layout& first = walk.layout_of(weight);
  for (size_t d = 0; d < first.axes().size(); ++d) {
    const auto by_axis = walk.cut_by(first, d);
    for (size_t a = 0; a < walk.axes(); ++a) cut[a] = cut[a] || by_axis[a];
  }
  return cut;
}

}  // namespace

void decode(Router& op, OpDecoder& in) {
  std::optional<std::vector<Dim>> bias_shape;
  in.finish({{"kind",
              [&op](const JsonValue& v) {
                op.kind =
                    v.one_of<Router::Kind>({{"softmax_topk", Router::Kind::kSoftmaxTopK},
                                            {"topk_softmax", Router::Kind::kTopKSoftmax},
                                            {"group_max", Router::Kind::kGroupMax},
                                            {"topk_sigmoid", Router::Kind::kTopKSigmoid},
                                            {"sigmoid_groups", Router::Kind::kSigmoidGroups},
                                            {"corrected_softmax", Router::Kind::kCorrectedSoftmax},
                                            {"corrected_sigmoid", Router::Kind::kCorrectedSigmoid},
                                            {"root_softplus", Router::Kind::kRootSoftplus},
                                            {"sparse_mixer", Router::Kind::kSparseMixer}});
              },
              true},
             in.weight("weight",
                       [&op] {
                         return std::vector{op.experts, op.columns};
                       }),
             in.weight(
                 "bias", [&] { return bias_shape.value_or(std::vector{op.experts}); }, false),
             {"bias_shape", [&](const JsonValue& v) { bias_shape = decode_dims(v); }},
             in.weight(
                 "table",
                 [&op] {
                   return std::vector{op.words.value_or(Dim{}), op.top_k};
                 },
                 false),
             in.optional_dim("words", op.words),
             in.dim("experts", op.experts),
             in.dim("top_k", op.top_k),
             in.dim("columns", op.columns),
             in.word("renormalise", op.renormalise),
             in.number("scale", op.scale),
             in.number("groups", op.groups),
             in.number("top_groups", op.top_groups),
             in.number("least_sum", op.least_sum),
             in.number("jitter", op.jitter)});
  if (op.words.has_value() != in.value().has("table") || (op.words && in.value().has("bias"))) {
    in.value().refuse(
        "a router with \"words\" where it has a \"table\", which is there for a bias");
  }
}

void check(const Router& op, const Widths& widths) {
  widths.exactly(0, widths.size(op.columns));
}

/// A product, as of linear, whose scores are then gathered: a choice needs those of all experts.
std::vector<plan::OpRow> rules(const Router& op, const RuleSite& site) {
  constexpr int kExperts = 0, kColumns = 1;
  const Placement bias = op.words ? kWhole : Placement::sharded(kExperts);
  auto rows = site.by_tokens();
  rows.push_back(site.row({kWhole}, {Placement::sharded(kExperts), bias, kWhole}, kCut));
  rows.push_back(site.row({kCut}, {Placement::sharded(kColumns), kWhole, kWhole}, kSum));
  for (plan::OpRow& row : rows) row.operands.resize(site.inputs() + site.weights());
  return rows;
}

Value place(const Router& op, Walk& walk, const BoundOp& bound) {
  walk.make_whole(walk.in(bound, 0));
  Value scores = walk.whole(walk.size(op.experts));
  const Layout& weight = walk.layout_of(bound.weights.front());
  const auto rules = walk.rules(bound);
  const auto by_experts = walk.cut_by(weight, 0), by_columns = walk.cut_by(weight, 1);
  for (size_t a = 0; a < walk.axes(); ++a) {
    const Placement on = by_columns[a]   ? Placement::sharded(1)
                         : by_experts[a] ? Placement::sharded(0)
                                         : kWhole;
    scores.on[a] = rule_for(rules, 1, on).result;
  }
  if (op.words) walk.refuse_cut(bound.weights[1], "table of words' experts");
  walk.make_whole(scores);
  return scores;
}

bool is_launched(const Router& /*op*/) {
  return true;
}

void decode(Experts& op, OpDecoder& in) {
  in.finish({in.dim("experts", op.experts),
             in.dim("top_k", op.top_k),
             in.dim("embed", op.embed),
             in.dim("mlp", op.mlp),
             in.optional_dim("among", op.among),
             in.activation("activation", op.activation, {std::string(kPairActivation)}),
             in.number("limit", op.limit),
             in.flag("scales_input", op.scales_input),
             {"forms",
              [&](const JsonValue& v) {
                for (const JsonValue& one : v.elements(1)) op.forms.push_back(decode_form(in, one));
              },
              true}});
}

void check(const Experts& op, const Widths& widths) {
  widths.exactly(0, widths.size(op.embed));
  widths.exactly(1, widths.size(op.experts));
}

/// Experts on different devices, or parts of every expert, give summands. `form.kernels` says which
/// stored axis of a matrix is cut with the experts' hidden features.
std::vector<plan::OpRow> rules(const Experts& /*op*/, const RuleSite& site) {
  const Experts::Form& form = *site.bound().form;
  const size_t matrices = form.order == Experts::Order::kSeparate ? 3 : 2;
  const std::vector<Placement> by_expert(site.weights(), Placement::sharded(0));
  std::vector<Placement> by_hidden(site.weights(), kWhole);
  const int rows_axis = form.in_rows ? 0 : 1;
  for (size_t i = 0; i < site.weights(); ++i) {
    const bool is_down = i % matrices + 1 == matrices;
    const bool is_bias = i >= matrices;
    if (is_bias && is_down) continue;  // added once
    const bool is_second = !is_bias && is_down == (form.kernels[i] == layout::Kernel::kOutIn);
    by_hidden[i] = Placement::sharded(rows_axis + (is_second ? 1 : 0));
  }
  auto rows = site.by_tokens();
  rows.push_back(site.row({kWhole, kWhole}, by_expert, kSum));
  rows.push_back(site.row({kWhole, kWhole}, by_hidden, kSum));
  return rows;
}

/// Returns the most experts of which a device has weights.
i64 experts_of_device(const Experts& op, const Walk& walk, const BoundOp& bound) {
  const BoundWeight& first = bound.weights.front();
  std::vector<bool> among = dealt_by(walk.mesh(), first, walk.layouts());
  if (!bound.form->per_expert) among = walk.cut_by(walk.layout_of(first), 0);
  i64 devices = 1;
  for (size_t a = 0; a < walk.axes(); ++a) {
    if (among[a]) devices *= walk.mesh().axes()[a].size;
  }
  return ceil_div(walk.size(op.experts), devices);
}

Value place(const Experts& op, Walk& walk, const BoundOp& bound) {
  walk.step().work.experts = experts_of_device(op, walk, bound);
  for (size_t i = 0; i < bound.op->in.size(); ++i) walk.make_whole(walk.in(bound, i));
  Value y = walk.whole(walk.size(op.embed));
  for (const BoundWeight& weight : bound.weights) {
    if (weight.empty()) continue;
    const auto cut = cut_at_all(walk, weight);
    if (walk.own_tokens().empty()) walk.require_dealt_once(weight, cut);
    for (size_t a = 0; a < walk.axes(); ++a) {
      if (cut[a] && !walk.has_own_tokens(a)) y.on[a] = Placement::partial();
    }
  }
  if (!walk.own_tokens().empty()) {
    walk.step().before.push_back(
        {walk.in(bound, 0).name,
         {Move::kAllToAll, walk.own_tokens(), walk.in(bound, 0).width, walk.step().of_prompt}});
    walk.step().after.push_back(
        {Move::kAllToAll, walk.own_tokens(), y.width, walk.step().of_prompt});
  }
  return y;
}

/// Returns the expected share of the experts that some of n tokens chose; `share` is that of one
/// token. How often an expert is chosen is exponentially distributed: tokens of real texts prefer
/// some. Equal experts would be
///     1 - (1 - share)^n
/// which is too many: gpt-oss-120b on one B200 decodes 128 tokens, 4 experts of 128 each, in less
/// time than reading all its experts takes (tests/costs/README.md).
double chosen_share(double share, double n) {
  const double others = share * (n - 1);
  return share + (1 - share) * others / (1 + others);
}

/// Kernels beside one for all products: they sort tokens by expert, activate, and sum the results.
constexpr i64 kMoreLaunches = 3;

/// Adds the values of these kernels: tokens, copied to their experts; the matrices' outputs there,
/// and what activations make of them; results, and their sums.
void add_rows(const Experts& op, Pricing& pricing) {
  const auto size = [&](const Dim& dim) { return static_cast<double>(pricing.model.size(dim)); };
  const Work& work = pricing.step.work;
  const auto here = static_cast<double>(work.experts);
  const double matrices = pricing.step.op->form->order == Experts::Order::kUngated ? 2 : 3;
  const double rows =
      static_cast<double>(pricing.all_tokens) * size(op.top_k) * here / size(op.experts);
  const double hidden =
      static_cast<double>(work.weight_elements) / (here * matrices * size(op.embed));
  pricing.add_values();
  pricing.add_values(rows * (2 * size(op.embed) + matrices * hidden));
  pricing.add_quantising(rows * (size(op.embed) + hidden),
                         rows * (size(op.embed) + (matrices - 1) * hidden));
}

bool is_fp4(plan::Arithmetic arithmetic) {
  return arithmetic == plan::Arithmetic::kFp4 || arithmetic == plan::Arithmetic::kFp4WithFp8;
}

/// Every token chooses top_k experts. A device computes the chosen ones that it has, and reads each
/// one that some token chose.
void price(const Experts& op, Pricing& pricing) {
  const Dim& all = op.among ? *op.among : op.experts;
  const double share = static_cast<double>(pricing.model.size(op.top_k)) /
                       static_cast<double>(pricing.model.size(all));
  const auto n = static_cast<double>(pricing.all_tokens);
  const double flops = 2 * n * share * static_cast<double>(pricing.step.work.weight_elements);
  pricing.add_flops(pricing.arithmetic(), flops);
  const double bytes = pricing.weight_bytes() * chosen_share(share, n);
  pricing.sum.weight_bytes += bytes;
  if (is_fp4(pricing.arithmetic())) {
    pricing.sum.fp4_expert_bytes += bytes;
    pricing.sum.fp4_expert_flops[static_cast<size_t>(pricing.arithmetic())] += flops;
  } else if (pricing.is_narrow()) {
    pricing.add_narrow(flops, bytes);
  }
  pricing.sum.launches += kMoreLaunches;
  add_rows(op, pricing);
}

bool is_launched(const Experts& /*op*/) {
  return true;
}

}  // namespace shardtool::ops
