#include "lib/engine/run/run.h"

#include <algorithm>
#include <iterator>

#include "kernels/encode/encode.h"
#include "kernels/ops/works.h"
#include "lib/engine/names.h"
#include "lib/ops/part_moves.h"

namespace shardtool::engine {
namespace {

using index::AxisMap;
using Kind = plan::Placement::Kind;

/// Number of different parts of a value that a new one is compared with.
constexpr size_t kMostDistinct = 64;

kernels::RouterSpec spec_of(const ops::Router& op, const Side& side) {
  const auto number = [&](const ops::Number& n) {
    return mapping::value_of(n, side.model->config);
  };
  kernels::RouterSpec spec;
  spec.kind = op.kind;
  spec.experts = side.model->size(op.experts);
  spec.top_k = side.model->size(op.top_k);
  spec.renormalise = ops::is_true(op.renormalise, side.model->config);
  spec.scale = number(op.scale);
  spec.groups = static_cast<i64>(number(op.groups));
  spec.top_groups = static_cast<i64>(number(op.top_groups));
  spec.least_sum = number(op.least_sum);
  spec.jitter = number(op.jitter);
  return spec;
}

}  // namespace

bool chooses(const ops::Op& op) {
  const auto* attention = std::get_if<ops::Attention>(&op.kind);
  return std::holds_alternative<ops::Router>(op.kind) ||
         (attention != nullptr && attention->index.has_value());
}

template <class N>
OpAt<N> Run<N>::at(i64 rank) {
  OpAt<N> at{*side_.model, side_, inputs_, *step_->op, layer_, rank, bench_of(rank), {}};
  at.choosing = choosing();
  for (size_t i = 0; i < step_->op->op->in.size(); ++i) at.in.push_back(&input(i, rank));
  const auto& on = step_->made.at(0);
  at.is_summed =
      std::any_of(on.begin(), on.end(), [](const auto& one) { return one.is(Kind::kPartial); });
  return at;
}

template <class N>
Choosing Run<N>::choosing() {
  if (is_field<N> || !chooses(*step_->op->op)) return {};
  const std::string& name = step_->op->op->out[0];
  const Choice* replayed = replayed_ == nullptr ? nullptr : &replayed_->at(name);
  return {replayed, &choices_[name], &undecidable_};
}

template <class N>
const Part<N>& Run<N>::input(size_t i, i64 rank) const {
  return values_.at(step_->op->op->in[i]).at(rank);
}

/// Keeps a device's part of a value. A part with the bits of another device's shares its memory, so
/// that the replicas of a value need the memory of one.
template <class N>
void Run<N>::make(const std::string& name, i64 rank, Part<N> part) {
  Placed<N>& made = values_[name];
  std::vector<i64>& distinct = distinct_[name];
  const auto is_equal = [&](i64 other) {
    const auto found = made.find(other);
    return found != made.end() && has_same_numbers(found->second, part);
  };
  if (!benches_.front().is_parallel()) {
    const auto same = std::ranges::find_if(distinct, is_equal);
    if (same != distinct.end()) {
      part.data = made.at(*same).data;
    } else if (distinct.size() < kMostDistinct) {
      distinct.push_back(rank);
    }
  }
  made[rank] = std::move(part);
}

template <class N>
void Run<N>::begin_layer(const model::Layer& layer, PlacedValues<N> entry,
                         std::span<const i64> devices) {
  values_ = std::move(entry);
  distinct_.clear();
  choices_.clear();
  layer_ = layer.number;
  all_devices_.assign(devices.begin(), devices.end());
  devices_.clear();
  std::ranges::set_intersection(fabric_.own(), devices, std::back_inserter(devices_));
}

template <class N>
void Run<N>::begin_step(const ops::Step& step) {
  step_ = &step;
  adders_.clear();
  for (const ops::ValueMove& input : step.before) {
    fabric_.exchange(input.exchange, inputs_.rows(), values_[input.value], benches_.front());
    round(input.value);
  }
  const auto* experts = std::get_if<ops::Experts>(&step.op->op->kind);
  if (experts == nullptr) return;
  const AxisMap features = AxisMap::identity(side_.model->size(experts->embed));
  for (const i64 rank : devices_) {
    Part<N> sum = empty_part<N>(features, inputs_.rows());
    bench_of(rank).zeros(sum.data);
    make(step.op->op->out[0], rank, std::move(sum));
  }
}

/// Returns the mesh axes along which devices add up the step's first output.
template <class N>
std::vector<std::string> Run<N>::summed_axes() const {
  const auto& on = step_->made.at(0);
  std::vector<std::string> names;
  for (size_t a = 0; a < on.size(); ++a) {
    if (on[a].is(Kind::kPartial)) names.push_back(side_.mesh.axes()[a].name);
  }
  return names;
}

/// Returns the layer's ranks, over all processes, that have a part of the tensor for this expert.
/// The parts of a group are added to one sum. `experts_of` returns the experts of a rank's parts,
/// with 0 for a tensor without experts.
template <class N>
const mesh::RankGroups& Run<N>::adders(
    size_t tensor, i64 expert, const std::function<std::vector<i64>(i64 rank)>& experts_of) {
  auto& known = adders_[tensor];
  if (known.empty()) {
    std::map<i64, std::vector<i64>> holders = {{expert, {}}};
    for (const i64 rank : all_devices_) {
      for (const i64 e : experts_of(rank)) holders[e].push_back(rank);
    }
    const std::vector<std::string> axes = summed_axes();
    for (const auto& [e, ranks] : holders) known.try_emplace(e, side_.mesh, ranks, axes);
  }
  return known.at(expert);
}

/// Returns the ranks that have a tensor of the weight.
template <class N>
const mesh::RankGroups& Run<N>::adders_of(const ops::BoundWeight& weight) {
  return adders(weight.front(), 0, [&](i64 rank) {
    const bool has = std::any_of(weight.begin(), weight.end(), [&](size_t tensor) {
      return side_.layouts(tensor).region(rank).has_value();
    });
    return has ? std::vector<i64>{0} : std::vector<i64>{};
  });
}

/// Returns the part of a replicated summand that a device adds, so that all devices of a sum add it
/// once; `adders` is its group. Residues: random parts that add up to 1, so that unequal replicas
/// change the sum. Floats: the first device adds all of it.
template <class N>
N Run<N>::share_of(i64 rank, const std::vector<i64>& adders) const {
  const bool is_first = !adders.empty() && adders.front() == rank;
  if constexpr (is_field<N>) {
    const std::uint64_t seed = kernels::hashed(inputs_.seed, 2000);
    const auto part = [seed](i64 device) {
      return kernels::field_random(seed, static_cast<std::uint64_t>(device));
    };
    if (!is_first) return part(rank);
    N rest = kernels::to_field(1);
    for (const i64 device : adders) rest = device == rank ? rest : rest - part(device);
    return rest;
  } else {
    return is_first ? 1 : 0;
  }
}

/// Returns the part of a stored bias that a device adds to its part of a sum.
template <class N>
N Run<N>::share_of_bias(const ops::BoundWeight& weight, i64 rank) {
  switch (side_.sum_bias(weight.front())) {
    case SumBias::kAfterReduction:
      return share_of(rank, adders_of(weight).of(rank));
    case SumBias::kToDivide:
      return number_of<N>(1.0 / static_cast<double>(adders_of(weight).of(rank).size()));
    case SumBias::kOwnShare:
    case SumBias::kDivided:
      break;
  }
  return number_of<N>(1);
}

template <class N>
void Run<N>::add_bias(const ops::BoundWeight& weight, i64 rank, Part<N>& part) {
  const size_t tensor = weight.front();
  if (!side_.layouts(tensor).region(rank)) return;
  const OpAt<N> here = at(rank);
  const N share = here.is_summed ? share_of_bias(weight, rank) : number_of<N>(1);
  std::vector<N> bias = load_vector(here, tensor, part.features);
  for (N& b : bias) b *= share;
  add_to_rows(bias, rank, part);
}

/// Runs the op's body, or adds the bias of a product.
template <class N>
void Run<N>::run_op(i64 rank) {
  const ops::Op& op = *step_->op->op;
  if (const auto apply = op.row->apply.of<N>(); apply != nullptr) {
    std::vector<Part<N>> parts = apply(at(rank));
    for (size_t i = 0; i < parts.size(); ++i) make(op.out[i], rank, std::move(parts[i]));
    return;
  }
  const auto* router = std::get_if<ops::Router>(&op.kind);
  const bool adds_bias = router != nullptr ? !router->words && !router->is_corrected()
                                           : std::holds_alternative<ops::Linear>(op.kind);
  if (adds_bias && ops::has_weight(*step_->op, 1)) {
    add_bias(step_->op->weights[1], rank, values_.at(op.out[0]).at(rank));
  }
}

/// Turns the scores of a router's output into the experts' weights.
template <class N>
void Run<N>::route(const ops::Router& op, i64 rank) {
  kernels::Workbench& bench = bench_of(rank);
  Part<N>& scores = values_.at(step_->op->op->out[0]).at(rank);
  const auto& weights = step_->op->weights;
  std::vector<N> correction;
  std::optional<WordExperts> of_words;
  if (op.words) {
    of_words.emplace(side_, weights[1].front(), rank);
  } else if (op.is_corrected() && weights.size() > 1 && !weights[1].empty()) {
    correction = load_vector(at(rank), weights[1].front(), scores.features);
  }
  const i64 rows = inputs_.rows();
  Part<N> gates = empty_part<N>(scores.features, rows);
  const kernels::RowView<const N> from{bench.in(scores.data), rows, scores.width()};
  const kernels::RowView<N> to{bench.out(gates.data), rows, gates.width()};
  const N* const corrections = correction.empty() ? nullptr : bench.in(correction);
  if constexpr (is_field<N>) {
    // All entries of a table of words count, so that an error in any changes the weights.
    std::vector<N> probes;
    for (i64 t = 0; t < rows && of_words; ++t) {
      probes.push_back(
          of_words->probe(kernels::hashed(inputs_.seed, 3000 + static_cast<std::uint64_t>(t))));
    }
    bench.run(kernels::RouteToAll{from, scores.width(), corrections,
                                  probes.empty() ? nullptr : bench.in(probes), to});
    bench.finish();
  } else {
    kernels::RouteRows<N> work{spec_of(op, side_), from, corrections, to};
    const Choosing here = choosing();
    Choice& choice = *here.chosen;
    choice.resize(static_cast<size_t>(rows * work.spec.top_k));
    std::vector<i64> counts;
    std::vector<N> gaps;
    if (of_words) {
      counts = experts_of_words(*of_words, work.spec, choice);
      work.counts = bench.in(counts);
    } else if (here.replayed != nullptr) {
      choice = *here.replayed;
    } else {
      gaps.resize(static_cast<size_t>(rows));
      work.chosen = bench.out(choice);
      work.gaps = bench.out(gaps);
    }
    if (gaps.empty()) work.given = bench.in(choice);
    bench.run(work);
    bench.finish();
    *here.undecidable += std::ranges::count_if(
        gaps, [](N gap) { return static_cast<double>(gap) < kUndecidableGap; });
  }
  scores = std::move(gates);
}

/// Fills in every token's experts, of its word. Returns how many they are: numbers that are not an
/// expert's get no weight, and come last.
template <class N>
std::vector<i64> Run<N>::experts_of_words(const WordExperts& of_words,
                                          const kernels::RouterSpec& spec, Choice& choice) const {
  std::vector<i64> counts;
  for (i64 t = 0; t < inputs_.rows(); ++t) {
    i64* const chosen = choice.data() + t * spec.top_k;
    of_words.copy(inputs_.tokens.at(static_cast<size_t>(t)), chosen);
    const auto is_expert = [&spec](i64 e) { return e >= 0 && e < spec.experts; };
    counts.push_back(std::partition(chosen, chosen + spec.top_k, is_expert) - chosen);
  }
  return counts;
}

template <class N>
void Run<N>::round(const std::string& name) {
  if constexpr (std::is_same_v<N, float>) {
    if (inputs_.activations == Dtype::kF32) return;
    std::vector<std::byte> stored;
    for (auto& [rank, part] : values_[name]) {
      if (part.data.is_there()) {
        round_there(bench_of(rank), part);
        continue;
      }
      const i64 count = std::ssize(part.data);
      stored.resize(static_cast<size_t>(count * bits(inputs_.activations) / 8));
      kernels::from_floats(inputs_.activations, part.data.data(), count, stored.data());
      kernels::to_floats(inputs_.activations, stored.data(), count, part.data.data());
    }
  }
}

template <class N>
void Run<N>::end_step(const ops::Step& step) {
  for (const i64 rank : devices_) run_op(rank);
  for (const std::string& name : step.op->op->out) round(name);
  for (const ops::Exchange& exchange : step.after) {
    fabric_.exchange(exchange, inputs_.rows(), values_[step.op->op->out[0]], benches_.front());
  }
  if (const auto* router = std::get_if<ops::Router>(&step.op->op->kind)) {
    for (const i64 rank : devices_) route(*router, rank);
    round(step.op->op->out[0]);
  }
}

#define SHARDTOOL_INSTANTIATE(N)                                                                 \
  template OpAt<N> Run<N>::at(i64);                                                              \
  template Choosing Run<N>::choosing();                                                          \
  template const Part<N>& Run<N>::input(size_t, i64) const;                                      \
  template N Run<N>::share_of(i64, const std::vector<i64>&) const;                               \
  template const mesh::RankGroups& Run<N>::adders(size_t, i64,                                   \
                                                  const std::function<std::vector<i64>(i64)>&);  \
  template std::vector<std::string> Run<N>::summed_axes() const;                                 \
  template void Run<N>::begin_layer(const model::Layer&, PlacedValues<N>, std::span<const i64>); \
  template void Run<N>::begin_step(const ops::Step&);                                            \
  template void Run<N>::round(const std::string&);                                               \
  template void Run<N>::end_step(const ops::Step&);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
