#include <fmt/format.h>

#include "kernels/ops/works.h"
#include "lib/base/error.h"
#include "lib/engine/names.h"
#include "lib/engine/run/run.h"
#include "lib/ops/part_moves.h"
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

}  // namespace

/// Returns the bias of one expert for the features of its summand; empty if it has none, or where
/// another rank has it, and this one stores zeros.
template <class N>
std::vector<N> Run<N>::expert_bias(size_t weight, const MatrixProduct& product,
                                   const AxisMap& features) {
  const auto& weights = step_->op->weights;
  if (weights.size() <= weight || weights[weight].empty()) return {};
  const size_t tensor = weights[weight].front();
  const AxisMap experts = side_.region(tensor, product.rank).at(0);
  if (experts.image_size() == 0) return {};
  const auto local = index::inverse(experts)(product.expert);
  if (!local) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("rank {} has the matrices of expert {} but not its bias", product.rank,
                            product.expert))
        .tensor(side_.tensors[tensor].name);
  }
  auto stored = ops::numbers_of<N>(side_.read_row(tensor, product.rank, *local), inputs_.map);
  const Part<N> row{stored.region.at(0), std::move(stored.data)};
  return aligned(row, features, 1, side_.tensors[tensor].name).data.values();
}

/// Returns every row times its token's weight for the expert.
template <class N>
Part<N> Run<N>::times_gates(const Part<N>& x, const MatrixProduct& product) {
  kernels::Workbench& bench = bench_of(product.rank);
  const Part<N>& gates = input(1, product.rank);
  const i64 rows = inputs_.rows();
  Part<N> y = empty_part<N>(x.features, rows);
  bench.run(kernels::WeighRows<N>{{bench.in(x.data), rows, x.width()},
                                  x.width(),
                                  bench.in(gates.data) + product.expert,
                                  gates.width(),
                                  {bench.out(y.data), rows, y.width()}});
  bench.finish();
  return y;
}

/// Returns the input of an expert's matrix: the layer's input, or for the last matrix the result of
/// the others.
template <class N>
Part<N> Run<N>::expert_input(const MatrixProduct& product) {
  kernels::Workbench& bench = bench_of(product.rank);
  const i64 rows = inputs_.rows();
  const std::string& name = side_.tensors[product.tensor].name;
  const auto& op = std::get<ops::Experts>(step_->op->op->kind);
  if (product.role != Role::kDown) {
    auto x = aligned(bench, input(0, product.rank), product.inputs(), rows, name);
    return op.scales_input ? times_gates(x, product) : x;
  }
  std::map<Role, Part<N>> made = std::move(expert_.extract(product.rank).mapped());
  Part<N> gate = std::move(made.at(Role::kGate)), up;
  const Form& form = *step_->op->form;
  if (form.order == ops::Experts::Order::kSeparate) {
    up = aligned(bench, made.at(Role::kUp), gate.features, rows, name);
  } else if (form.order != ops::Experts::Order::kUngated) {
    const auto halves = gate_and_up(form, gate.features, name);
    const auto half = [&](const ops::Section& section) {
      return picked(bench, gate, section.features, section.from, rows);
    };
    up = aligned(bench, half(halves[1]), halves[0].features, rows, name);
    gate = half(halves[0]);
  }
  kernels::ActivateAll<N> work;
  work.is_pair = op.activation.config.empty() && op.activation.value == ops::kPairActivation;
  if (!work.is_pair) work.kind = activation_of(op.activation, side_.model->config);
  work.n = std::ssize(gate.data);
  work.y = bench.in_out(gate.data);
  work.x = work.y;
  if (form.order != ops::Experts::Order::kUngated) {
    const double limit = mapping::value_of(op.limit, side_.model->config);
    work.up = bench.in(up.data);
    work.is_limited = limit > 0;
    work.limit = number_of<N>(limit);
  }
  bench.run(work);
  bench.finish();
  return aligned(bench, gate, product.inputs(), rows, name);
}

/// Adds a bias to every row.
template <class N>
void Run<N>::add_to_rows(const std::vector<N>& bias, i64 rank, Part<N>& part) {
  if (bias.empty()) return;
  kernels::Workbench& bench = bench_of(rank);
  bench.run(kernels::AddToRows<N>{
      {bench.in_out(part.data), inputs_.rows(), part.width()}, part.width(), bench.in(bias)});
  bench.finish();
}

/// Returns the ranks that have an expert's row of the tensor.
template <class N>
const mesh::RankGroups& Run<N>::adders_of_expert(size_t tensor, i64 expert) {
  return adders(tensor, expert, [&](i64 rank) {
    std::vector<i64> experts;
    const auto region = side_.layouts(tensor).region(rank);
    if (!region) return experts;
    for (const index::Piece& piece : region->front().pieces()) {
      for (i64 e = piece.global; e < piece.global_end(); ++e) experts.push_back(e);
    }
    return experts;
  });
}

template <class N>
void Run<N>::end_expert(const MatrixProduct& product, Part<N> y) {
  const i64 rows = inputs_.rows();
  const bool is_fused = step_->op->form->order != ops::Experts::Order::kSeparate;
  if (product.role != Role::kDown) {
    if (is_fused) add_to_rows(expert_bias(kFusedUpBias, product, y.features), product.rank, y);
    expert_[product.rank][product.role] = std::move(y);
    return;
  }
  // Devices that share an expert's bias add it once.
  std::vector<N> bias;
  if (is_fused) bias = expert_bias(kFusedDownBias, product, y.features);
  if (!bias.empty()) {
    const size_t tensor = step_->op->weights[kFusedDownBias].front();
    const mesh::RankGroups& adders = adders_of_expert(tensor, product.expert);
    const N share = share_of(product.rank, adders.of(product.rank));
    for (N& b : bias) b *= share;
  }
  add_to_rows(bias, product.rank, y);
  kernels::Workbench& bench = bench_of(product.rank);
  Part<N>& sum = values_.at(step_->op->op->out[0]).at(product.rank);
  kernels::WeighRows<N> work;
  work.adds = true;
  if (!std::get<ops::Experts>(step_->op->op->kind).scales_input) {
    const Part<N>& gates = input(1, product.rank);
    work.weight = bench.in(gates.data) + product.expert;
    work.stride = gates.width();
  }
  const N* const from = bench.in(y.data);
  N* const to = bench.in_out(sum.data);
  for (const index::Piece& piece : y.features.pieces()) {
    work.x = {from + piece.local, rows, y.width()};
    work.y = {to + piece.global, rows, sum.width()};
    work.n = piece.size;
    bench.run(work);
  }
  bench.finish();
}

#define SHARDTOOL_INSTANTIATE(N)                                              \
  template Part<N> Run<N>::times_gates(const Part<N>&, const MatrixProduct&); \
  template void Run<N>::add_to_rows(const std::vector<N>&, i64, Part<N>&);    \
  template Part<N> Run<N>::expert_input(const MatrixProduct&);                \
  template void Run<N>::end_expert(const MatrixProduct&, Part<N>);            \
  template std::vector<N> Run<N>::expert_bias(size_t, const MatrixProduct&, const index::AxisMap&);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
