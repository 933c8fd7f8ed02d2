#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/engine/names.h"
#include "lib/engine/run/run.h"
#include "lib/ops/sections/section_list.h"

namespace shardtool::engine {
namespace {

using index::AxisMap;
using Role = MatrixProduct::Role;
using Form = ops::Experts::Form;

/// Indices of the biases among a form's weights, after the matrices.
constexpr size_t kFusedUpBias = 2;
constexpr size_t kFusedDownBias = 3;

/// Returns the sections gate and up of a fused axis, which is twice the experts' width.
std::vector<ops::Section> gate_and_up(const Form& form, const AxisMap& fused,
                                      const std::string& what) {
  const i64 half = fused.global_size() / 2;
  const auto order = form.order == ops::Experts::Order::kInterleaved
                         ? ops::Split::Order::kInterleaved
                         : ops::Split::Order::kConcat;
  return ops::sections_of(order, fused, {half, half}, what);
}

template <class N>
Part<N> section(const Part<N>& fused, const ops::Section& part, i64 rows) {
  Part<N> y = empty_part<N>(part.features, rows);
  for (i64 t = 0; t < rows; ++t) {
    for (size_t i = 0; i < part.from.size(); ++i) y.row(t)[i] = fused.row(t)[part.from[i]];
  }
  return y;
}

/// Multiplies every row by its token's weight for the expert.
template <class N>
Part<N> times_gates(Part<N> x, const Part<N>& gates, i64 expert) {
  const i64 rows = std::ssize(gates.data) / gates.width();
  for (i64 t = 0; t < rows; ++t) {
    for (i64 f = 0; f < x.width(); ++f) x.row(t)[f] *= gates.row(t)[expert];
  }
  return x;
}

}  // namespace

/// Returns the bias of one expert for the features of its summand; empty if it has none, or where
/// another rank has it, and this one stores zeros.
template <class N>
std::vector<N> Run<N>::expert_bias(size_t weight, const MatrixProduct& product,
                                   const AxisMap& features) {
  const auto& weights = step_->op->weights;
  if (weights.size() <= weight || weights[weight].empty()) return {};
  const size_t tensor = weights[weight].front();
  const auto all = load_small<N>(side_, inputs_.map, tensor, product.rank);
  const AxisMap& experts = all.region.at(0);
  if (experts.image_size() == 0) return {};
  const auto local = index::inverse(experts)(product.expert);
  if (!local) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("rank {} has the matrices of expert {} but not its bias", product.rank,
                            product.expert))
        .tensor(side_.tensors[tensor].name);
  }
  const AxisMap& columns = all.region.at(1);
  const auto begin = all.data.begin() + *local * columns.local_size();
  const Part<N> row{columns, {begin, begin + columns.local_size()}};
  return aligned(row, features, 1, side_.tensors[tensor].name).data.values();
}

/// Returns the input of an expert's matrix: the layer's input, or for the last matrix the result of
/// the others.
template <class N>
Part<N> Run<N>::expert_input(const MatrixProduct& product) {
  const i64 rows = inputs_.rows();
  const std::string& name = side_.tensors[product.tensor].name;
  const auto& op = std::get<ops::Experts>(step_->op->op->kind);
  if (product.role != Role::kDown) {
    auto x = aligned(input(0, product.rank), product.inputs(), rows, name);
    return op.scales_input ? times_gates(std::move(x), input(1, product.rank), product.expert) : x;
  }
  std::map<Role, Part<N>> made = std::move(expert_.extract(product.rank).mapped());
  Part<N> gate = std::move(made.at(Role::kGate));
  if (step_->op->form->order == ops::Experts::Order::kUngated) {
    const auto kind = activation_of(op.activation, side_.model->config);
    for (N& x : gate.data) x = activated(kind, x);
    return aligned(gate, product.inputs(), rows, name);
  }
  Part<N> up;
  if (step_->op->form->order == ops::Experts::Order::kSeparate) {
    up = aligned(made.at(Role::kUp), gate.features, rows, name);
  } else {
    const auto halves = gate_and_up(*step_->op->form, gate.features, name);
    up = aligned(section(gate, halves[1], rows), halves[0].features, rows, name);
    gate = section(gate, halves[0], rows);
  }
  const bool is_pair = op.activation.config.empty() && op.activation.value == ops::kPairActivation;
  const auto kind = is_pair ? kernels::ActivationKind::kLinear
                            : activation_of(op.activation, side_.model->config);
  const double limit = mapping::value_of(op.limit, side_.model->config);
  for (size_t i = 0; i < gate.data.size(); ++i) {
    N& g = gate.data[i];
    if (limit > 0) g = at_most(limit, g);
    const N u = limit > 0 ? limited(limit, up.data[i]) : up.data[i];
    g = is_pair ? activated_pair(g, u) : activated(kind, g) * u;
  }
  return aligned(gate, product.inputs(), rows, name);
}

template <class N>
void Run<N>::end_expert(const MatrixProduct& product, Part<N> y) {
  const i64 rows = inputs_.rows();
  if (product.role != Role::kDown) {
    const bool is_fused = step_->op->form->order != ops::Experts::Order::kSeparate;
    const auto bias = is_fused ? expert_bias(kFusedUpBias, product, y.features) : std::vector<N>();
    for (i64 t = 0; t < rows && !bias.empty(); ++t) {
      for (i64 f = 0; f < y.width(); ++f) y.row(t)[f] += bias[static_cast<size_t>(f)];
    }
    expert_[product.rank][product.role] = std::move(y);
    return;
  }
  // Devices that share an expert's bias add it once.
  std::vector<N> bias;
  if (step_->op->form->order != ops::Experts::Order::kSeparate) {
    bias = expert_bias(kFusedDownBias, product, y.features);
  }
  if (!bias.empty()) {
    const size_t tensor = step_->op->weights[kFusedDownBias].front();
    std::vector<i64> holders;
    for (const i64 rank : all_devices_) {
      const auto region = side_.layouts(tensor).region(rank);
      const bool has = region && index::inverse(region->front())(product.expert).has_value();
      if (has) holders.push_back(rank);
    }
    const N share = share_of(product.rank, holders);
    for (N& b : bias) b *= share;
  }
  const bool scales_input = std::get<ops::Experts>(step_->op->op->kind).scales_input;
  const Part<N>& gates = input(1, product.rank);
  Part<N>& sum = values_.at(step_->op->op->out[0]).at(product.rank);
  for (i64 t = 0; t < rows; ++t) {
    const N gate = scales_input ? number_of<N>(1) : gates.row(t)[product.expert];
    for (const index::Piece& piece : y.features.pieces()) {
      for (i64 i = 0; i < piece.size; ++i) {
        const N& plain = y.row(t)[piece.local + i];
        const N biased = bias.empty() ? plain : plain + bias[static_cast<size_t>(piece.local + i)];
        sum.row(t)[piece.global + i] += gate * biased;
      }
    }
  }
}

#define SHARDTOOL_INSTANTIATE(N)                                   \
  template Part<N> Run<N>::expert_input(const MatrixProduct&);     \
  template void Run<N>::end_expert(const MatrixProduct&, Part<N>); \
  template std::vector<N> Run<N>::expert_bias(size_t, const MatrixProduct&, const index::AxisMap&);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
