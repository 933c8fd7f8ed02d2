#include "lib/engine/tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lib/engine/diagnosis/peer_text.h"
#include "lib/engine/names.h"
#include "lib/engine/run/layer_entry.h"

namespace shardtool::engine {
namespace {

/// Digest of a result of a layer. Digests of all results are added.
std::uint64_t digest_of(const Part<Field>& whole, size_t layer) {
  std::uint64_t digest = kernels::hashed(layer, static_cast<std::uint64_t>(whole.width()));
  for (const Field x : whole.data) digest = kernels::hashed(digest, x.v);
  return digest;
}

/// Returns the last step that reads or makes a value, by its name; not of values that the layer
/// passes on.
std::map<std::string, size_t> last_uses(const LayerPair& layer) {
  std::map<std::string, size_t> last;
  for (size_t step = 0; step < layer.shards.flow.steps.size(); ++step) {
    const ops::Step& one = layer.shards.flow.steps[step];
    const ops::Op& op = *one.op->op;
    for (const ops::ValueMove& input : one.before) last[input.value] = step;
    for (const std::string& name : op.in) last[name] = step;
    for (const std::string& name : op.out) last[name] = step;
  }
  std::erase_if(last, [&](const auto& use) { return layer.is_result(use.first); });
  for (const ops::ValueMove& handoff : layer.shards.handoffs) last.erase(handoff.value);
  return last;
}

}  // namespace

template <class N>
Tier<N>::Tier(TierKind kind, Standard standard, const Side& reference, const Side& shards,
              comm::Communicator* comm, Inputs inputs, double tolerance, const Memories& memories)
    : inputs_(std::move(inputs)),
      standard_(standard),
      shards_(shards),
      fabric_(shards.mesh, comm,
              kind == TierKind::kNative ? std::optional(inputs_.activations) : std::nullopt),
      bench_(first_of(memories)),
      reference_(reference, inputs_, memories),
      shards_run_(shards, fabric_, inputs_, memories),
      tolerance_(tolerance) {
  verdict_.kind = kind;
}

template <class N>
const SideLayer& Tier<N>::reference_layer() const {
  return standard_ == Standard::kWhole ? layer_->whole : layer_->shards;
}

template <class N>
Outcome Tier<N>::of_fault() const {
  return standard_ == Standard::kWhole ? Outcome::kFail : Outcome::kDiffers;
}

/// Returns the reference's value from the layers before. In the field, and for what this run has
/// not made, returns random numbers.
template <class N>
Part<N> Tier<N>::layer_input(const std::string& name, i64 width) const {
  const auto before = is_field<N> ? carried_.end() : carried_.find(name);
  return before == carried_.end() ? random_input(name, width) : before->second;
}

template <class N>
Part<N> Tier<N>::random_input(const std::string& name, i64 width) const {
  Part<N> x = empty_part<N>(index::AxisMap::identity(width), inputs_.rows());
  std::uint64_t layer = kernels::hashed(inputs_.seed, 1000 + layer_index_);
  for (const char c : name) layer = kernels::hashed(layer, static_cast<unsigned char>(c));
  for (i64 t = 0; t < inputs_.length; ++t) {
    const std::uint64_t seed = kernels::hashed(layer, static_cast<std::uint64_t>(t));
    for (i64 f = 0; f < x.width(); ++f) {
      x.row(t)[f] = ops::any_number<N>(seed, static_cast<std::uint64_t>(f));
    }
  }
  return x;
}

template <class N>
void Tier<N>::begin_layer(const LayerPair& layer, size_t index) {
  const LayerPair* before = layer_;
  layer_ = &layer;
  layer_index_ = index;
  events_.clear();
  for (auto& [name, made] : whole_results_) carried_[name] = std::move(made);
  whole_results_.clear();
  shards_results_.clear();
  last_uses_ = last_uses(layer);
  const SideLayer& shards = layer.shards;
  Wholes<N> values;
  for (const auto& [name, value] : shards.entry) values[name] = layer_input(name, value.width);
  auto entry = layer_entry(values, shards.entry, shards_.mesh, shards.devices, fabric_.own(),
                           inputs_.rows(), bench_);
  if (before != nullptr) hand_over(*before, values, entry);
  if (fabric_.is_first_process()) reference_.begin_layer(reference_layer(), values);
  shards_run_.begin_layer(*shards.layer, std::move(entry), shards.devices);
}

/// Begins a pipeline stage with the values that the previous stage sends: its results, or in the
/// field random numbers. If the sent or received values are wrong, the stage begins with the
/// reference's values, so that each fault is reported once. With kBits it always does, because an
/// unreduced sum begins with the first device on both sides.
template <class N>
void Tier<N>::hand_over(const LayerPair& before, const Wholes<N>& values, PlacedValues<N>& entry) {
  const SideLayer& from = before.shards;
  const SideLayer& to = layer_->shards;
  if (from.handoffs.empty()) return;
  auto sent = layer_entry(values, to.entry, shards_.mesh, from.devices, fabric_.own(),
                          inputs_.rows(), bench_);
  for (const auto& [name, exchange] : from.handoffs) {
    for (auto& [rank, part] : sent.at(name)) {
      if (is_field<N> || !hands_on_made_) break;
      part = aligned(shards_run_.value(name).at(rank), part.features, inputs_.rows(), name);
    }
    Placed<N> received = fabric_.hand_over(exchange, from.devices, to.devices, sent.at(name));
    Placed<N> summed = received;
    fabric_.reduce(to.entry.at(name).on, summed, bench_);
    const ValueDifference found = compare(values.at(name), summed, inputs_.rows(), tolerance_);
    verdict_.checked += found.checked;
    if (found.mismatches == 0) {
      entry.at(name) = std::move(received);
    } else if (!found.has_nan) {
      add_handoff_fault(before, name, found);
    }
  }
}

template <class N>
void Tier<N>::add_handoff_fault(const LayerPair& before, const std::string& value,
                                const ValueDifference& found) {
  Fault fault;
  fault.tier = verdict_.kind;
  fault.layer = layer_->name();
  fault.op = "hand-off";
  fault.value = value;
  fault.rank = found.rank;
  fault.token = found.token;
  fault.feature = found.feature;
  fault.mismatches = found.mismatches;
  fault.layer_index = layer_index_;
  fault.diagnosis =
      fmt::format("rank {} did not receive what the stage of {} sent", found.rank, before.name());
  verdict_.outcome = of_fault();
  verdict_.mismatches += found.mismatches;
  verdict_.faults.push_back(std::move(fault));
}

template <class N>
void Tier<N>::begin_step(size_t step) {
  if (fabric_.is_first_process()) reference_.begin_step(step);
  shards_run_.begin_step(layer_->shards.flow.steps[step]);
}

template <class N>
void Tier<N>::begin(bool of_shards, const MatrixProduct& product, const MatrixProduct& first) {
  of_shards ? shards_run_.begin(product, first) : reference_.begin(product);
}

template <class N>
void Tier<N>::multiply(bool of_shards, const MatrixProduct& product, const MatrixBlock& block) {
  of_shards ? shards_run_.multiply(product, block) : reference_.multiply(product, block);
}

template <class N>
void Tier<N>::multiply_there(bool of_shards, const MatrixProduct& product, const MatrixBlock& block,
                             const std::byte* there) {
  of_shards ? shards_run_.multiply_there(product, block, there)
            : reference_.multiply_there(product, block, there);
}

template <class N>
void Tier<N>::end(bool of_shards, const MatrixProduct& product) {
  of_shards ? shards_run_.end(product) : reference_.end(product);
}

template <class N>
void Tier<N>::end_step(size_t step) {
  const ops::Step& shards = layer_->shards.flow.steps[step];
  if (fabric_.is_first_process()) reference_.end_step(step);
  if (!is_field<N> && chooses(*shards.op->op)) {
    take_from_peer(fabric_.broadcast(to_peer(reference_.run().choices())), "choice",
                   [&](const nlohmann::json& text) { text.get_to(choices_); });
    shards_run_.replay(&choices_);
  }
  shards_run_.end_step(shards);
  for (size_t i = 0; i < shards.op->op->out.size(); ++i) compare_output(step, i);
  forget_values(step);
}

/// Frees the values that no later step reads. Those on an accelerator stay, because comparisons may
/// not be done.
template <class N>
void Tier<N>::forget_values(size_t step) {
  if (computes_there()) return;
  for (const auto& [name, last] : last_uses_) {
    if (last != step) continue;
    shards_run_.forget(name);
    if (fabric_.is_first_process()) reference_.forget(name);
  }
}

/// May reduce `parts` in place; they stay as they were compared. Values on the accelerator are
/// compared there, and the result is fetched with those of the layer.
template <class N>
void Tier<N>::compare_with(const Placed<N>& expected, Placed<N>& parts, Event& event) {
  if (standard_ == Standard::kBits) {
    event.difference = compare_bits(expected, parts, inputs_.rows());
    return;
  }
  fabric_.reduce(layer_->shards.flow.steps[event.step].made[event.output], parts, bench_);
  const Part<N>& whole = expected.at(0);
  const auto is_there = [](const auto& part) { return part.second.data.is_there(); };
  if (whole.data.is_there() || std::ranges::any_of(parts, is_there)) {
    event.pending.emplace(bench_, whole, parts, inputs_.rows(), tolerance_);
  } else {
    event.difference = compare(whole, parts, inputs_.rows(), tolerance_);
  }
}

template <class N>
void Tier<N>::fetch_events() {
  for (Event& event : events_) {
    if (!event.pending) continue;
    event.difference = event.pending->result();
    event.pending.reset();
  }
}

template <class N>
void Tier<N>::compare_output(size_t step, size_t output) {
  const ops::Step& made_by = reference_layer().flow.steps[step];
  const std::string& name = made_by.op->op->out[output];
  Placed<N> expected;
  if (fabric_.is_first_process()) expected = reference_.run().value(name);
  fabric_.broadcast(expected);
  Placed<N> parts;
  if (shards_run_.has(name)) parts = shards_run_.value(name);
  compare_with(expected, parts, events_.emplace_back(Event{step, output, {}, {}}));
  if (!layer_->is_result(name)) return;
  if constexpr (is_field<N>) {
    if (fabric_.is_first_process()) digest_ += digest_of(expected.at(0), layer_index_);
  }
  whole_results_[name] = reference_.whole_of(std::move(expected), made_by.made[output]);
  shards_results_[name] = std::move(parts);
}

/// Sums the differences of the layer's results, using the last value of each name.
template <class N>
ValueDifference Tier<N>::result() const {
  std::map<std::string_view, const ValueDifference*> last;
  for (const Event& event : events_) {
    const std::string& name = layer_->whole.flow.steps[event.step].op->op->out[event.output];
    if (layer_->is_result(name)) last[name] = &event.difference;
  }
  ValueDifference all;
  for (const auto& [name, one] : last) {
    all.checked += one->checked;
    all.mismatches += one->mismatches;
    all.worst = std::max(all.worst, one->worst);
    all.has_nan = all.has_nan || one->has_nan;
  }
  return all;
}

/// Decides by the layer's results. The first differing value inside the layer locates the fault.
template <class N>
void Tier<N>::end_layer() {
  fetch_events();
  const auto differs = [](const Event& event) { return event.difference.mismatches > 0; };
  const auto differing = std::ranges::count_if(events_, differs);
  const ValueDifference found = result();
  verdict_.checked += found.checked;
  const bool is_judged = tolerance_ < std::numeric_limits<double>::infinity();
  if (is_judged) verdict_.worst = std::max(verdict_.worst, found.worst);
  if (found.has_nan) verdict_.outcome = std::max(verdict_.outcome, Outcome::kUndecided);
  const i64 mismatches = found.mismatches;
  hands_on_made_ = mismatches == 0 && standard_ == Standard::kWhole;
  if (mismatches == 0) {
    verdict_.reordered += differing;
    if (differing > 0) verdict_.reordered_layers.push_back(layer_index_);
    return;
  }
  verdict_.mismatches += mismatches;
  if (found.has_nan) return;  // NaN is unequal to itself
  verdict_.outcome = of_fault();
  add_fault(*std::ranges::find_if(events_, differs), mismatches);
}

template <class N>
void Tier<N>::add_fault(const Event& first, i64 mismatches) {
  const ops::Step& step = layer_->shards.flow.steps[first.step];
  Fault fault;
  fault.tier = verdict_.kind;
  fault.layer = layer_->name();
  fault.op = step.op->op->row->title;
  fault.value = step.op->op->out[first.output];
  for (const ops::BoundWeight& weight : step.op->weights) {
    for (const size_t tensor : weight) fault.tensors.push_back(shards_.tensors[tensor].name);
  }
  fault.rank = first.difference.rank;
  fault.token = first.difference.token;
  fault.feature = first.difference.feature;
  fault.mismatches = mismatches;
  fault.layer_index = layer_index_;
  fault.step = first.step;
  verdict_.faults.push_back(std::move(fault));
}

template class Tier<Field>;
template class Tier<double>;
template class Tier<float>;

}  // namespace shardtool::engine
