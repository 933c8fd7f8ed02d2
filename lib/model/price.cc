#include "lib/model/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "lib/base/dtype.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/model/causal.h"
#include "lib/model/flow/handoff.h"
#include "lib/model/flow/shared_flows.h"
#include "lib/model/flow/token_axes.h"
#include "lib/ops/op_table.h"

namespace shardtool::model {
namespace {

using ops::Phase;

/// Returns Amounts::launches of one layer; for an encoder's layer only if it runs. Products of the
/// same value count as one launch.
i64 launches_of(const LayerFlow& flow, bool runs_encoder) {
  i64 launches = 0;
  std::set<std::string> multiplied;  // values that have not changed since
  for (const Step& step : flow.steps) {
    if (step.of_prompt && !runs_encoder) continue;
    const Op& op = *step.op->op;
    if (std::holds_alternative<Linear>(op.kind)) {
      launches += multiplied.insert(op.in.front()).second ? 1 : 0;
    } else {
      launches += op.row->is_launched(op) ? 1 : 0;
    }
    for (const std::string& made : op.out) multiplied.erase(made);
  }
  return launches;
}

/// Adds the values that training quantises for a product. A norm writes its result quantised in
/// place of the value itself, so that its bytes stay the same.
void add_quantising(const Step& step, ops::Pricing& pricing) {
  const auto n = static_cast<double>(pricing.tokens);
  const i64 inputs = step.reads_norm ? 0 : step.work.input_elements;
  pricing.add_quantising(n * static_cast<double>(inputs),
                         n * static_cast<double>(step.work.output_elements));
}

/// Collectives of a pass, equal ones counted together.
class CommTable {
 public:
  CommTable(const mesh::Mesh& mesh, const plan::HardwareProfile* profile)
      : mesh_(mesh), profile_(profile) {}

  const plan::Group& group(const mesh::Over& over);
  void add(const mesh::Over& over, const plan::Collective& collective);
  void add(const WeightGather& gather, plan::CollectiveOp op) {
    add(gather.over, {op, group(gather.over), gather.bytes});
  }
  /// Returns the rows, sorted, and begins anew.
  std::vector<CommRow> take_sorted();

 private:
  /// Axis, op, payload, bytes through the network.
  using Key = std::tuple<std::string, plan::CollectiveOp, i64, std::optional<i64>>;

  const mesh::Mesh& mesh_;
  const plan::HardwareProfile* profile_;
  std::map<Key, CommRow> rows_;
  std::map<std::string, plan::Group> groups_;
};

const plan::Group& CommTable::group(const mesh::Over& over) {
  const auto [found, is_new] = groups_.try_emplace(mesh::to_string(over));
  const i64 domain = profile_ == nullptr ? mesh_.size() : profile_->domain();
  if (is_new) found->second = plan::group_along(mesh_, over, domain);
  return found->second;
}

void CommTable::add(const mesh::Over& over, const plan::Collective& collective) {
  CommRow& row = rows_[{mesh::to_string(over), collective.op, collective.payload_bytes,
                        collective.network_bytes}];
  if (row.count++ > 0) return;
  row.axis = mesh::to_string(over);
  row.collective = collective;
  row.wire_bytes_per_rank = wire_bytes(collective);
  if (profile_ != nullptr) row.time = plan::time_of(collective, *profile_);
}

std::vector<CommRow> CommTable::take_sorted() {
  std::vector<CommRow> rows;
  for (auto& [key, row] : rows_) rows.push_back(std::move(row));
  rows_.clear();
  return rows;
}

/// Sums the moves and the work of a phase, layer by layer.
class Sum {
 public:
  Sum(const Model& model, std::span<const ops::WeightRead> reads, const mesh::Mesh& mesh,
      mesh::Over dealt, const ReplicaWorkload& workload, const plan::HardwareProfile* profile)
      : model_(model),
        reads_(reads),
        mesh_(mesh),
        dealt_(std::move(dealt)),
        workload_(workload),
        profile_(profile),
        causal_(is_causal(model)),
        has_encoder_(std::ranges::any_of(model.layers, &Layer::of_prompt)) {}

  PhasePrice of(const std::vector<PricedLayer>& layers, const Phase& phase) const;
  std::vector<PhasePrice> of_each(const std::vector<PricedLayer>& layers, const Phase& phase) const;

 private:
  /// Returns the largest number of the n tokens or sequences that a device has.
  i64 share_of(i64 n) const { return ceil_div(n, mesh::extent(mesh_, dealt_)); }
  void add(const Step& step, i64 tokens, CommTable& comm) const;
  void add(const Exchange& exchange, i64 tokens, CommTable& comm) const;
  void add(const PricedLayer& priced, const Layer& layer, const Phase& all, PhasePrice& price,
           CommTable& comm) const;
  Phase of_device(const Phase& all) const;
  Phase of_step(const Step& step, const Phase& phase) const;
  plan::Collective dispatch(const Experts& op, const plan::Group& devices, const Exchange& exchange,
                            i64 tokens) const;
  i64 activation_bytes(i64 elements, i64 tokens) const;
  Roofline roofline_of(const PhasePrice& price) const;
  void finish(CommTable& comm, PhasePrice& price) const;

  const Model& model_;
  std::span<const ops::WeightRead> reads_;
  const mesh::Mesh& mesh_;
  mesh::Over dealt_;  ///< axes along which devices have their own tokens
  const ReplicaWorkload& workload_;
  const plan::HardwareProfile* profile_;
  bool causal_;
  bool has_encoder_;
};

i64 Sum::activation_bytes(i64 elements, i64 tokens) const {
  const auto all = checked_mul(elements, tokens);
  const auto bits_all = all ? checked_mul(*all, bits(workload_.activations)) : all;
  if (!bits_all) throw Error(ErrorCode::kLimit, "the activations of a pass are above 2^63 bits");
  return ceil_div(*bits_all, 8);
}

void Sum::add(const Step& step, i64 tokens, CommTable& comm) const {
  const auto* experts = std::get_if<Experts>(&step.op->op->kind);
  std::vector<Exchange> moves = exchanges(step);
  if (workload_.every_logit && step.op->op->is_head) {
    const auto after = moves.begin() + std::ssize(step.before);
    const auto is_gather = [](const Exchange& move) { return move.move == plan::Move::kAllGather; };
    moves.erase(std::remove_if(after, moves.end(), is_gather), moves.end());
  }
  for (const Exchange& exchange : moves) {
    if (experts != nullptr && exchange.move == plan::Move::kAllToAll) {
      comm.add(exchange.over, dispatch(*experts, comm.group(exchange.over), exchange, tokens));
    } else {
      add(exchange, tokens, comm);
    }
  }
}

void Sum::add(const Exchange& exchange, i64 tokens, CommTable& comm) const {
  const plan::Group devices = comm.group(exchange.over);
  const i64 bytes = activation_bytes(exchange.elements, tokens);
  const bool is_scattered = workload_.sequence_parallel &&
                            exchange.move == plan::Move::kAllReduce && tokens >= devices.devices;
  const auto add_move = [&](plan::Move move) {
    const auto collective = plan::collective_for(move, devices, bytes);
    if (collective) comm.add(exchange.over, *collective);
  };
  add_move(is_scattered ? plan::Move::kReduceScatter : exchange.move);
  if (is_scattered) add_move(plan::Move::kAllGather);
}

/// Returns the collective that sends tokens to their experts, or back. Assumes that all experts
/// compute.
plan::Collective Sum::dispatch(const Experts& op, const plan::Group& devices,
                               const Exchange& exchange, i64 tokens) const {
  return plan::dispatch(model_.size(op.experts), model_.size(op.top_k), devices,
                        activation_bytes(exchange.elements, tokens));
}

Roofline Sum::roofline_of(const PhasePrice& price) const {
  double comm_us = 0;
  for (const CommRow& row : price.comm) comm_us += static_cast<double>(row.count) * row.time.us;
  return roofline(price.amounts, *profile_, comm_us);
}

Phase Sum::of_device(const Phase& all) const {
  Phase phase = all;
  phase.tokens = share_of(all.tokens);
  phase.sequences = share_of(all.sequences);
  return phase;
}

/// Returns the phase of one step. An encoder's steps read the prompt in a prefill. Other steps of
/// such a model have one token per sequence, which attends to the prompt or to earlier tokens; with
/// every logit they have an answer as long as the prompt.
Phase Sum::of_step(const Step& step, const Phase& phase) const {
  if (!has_encoder_ || workload_.every_logit || (step.of_prompt && phase.is_prefill)) return phase;
  if (step.of_prompt) return {};
  const i64 before = phase.is_prefill ? 1 : phase.context;
  return {phase.sequences, phase.sequences, false,
          step.reads_prompt ? workload_.prompt_len : before};
}

void Sum::add(const PricedLayer& priced, const Layer& layer, const Phase& all, PhasePrice& price,
              CommTable& comm) const {
  if (layer.is_vision_encoder) return;
  const LayerFlow& flow = *priced.flow;
  const Phase mine = of_device(all);
  const bool last_only = causal_ && layer.part == Layer::Part::kEnd && !workload_.every_logit;
  price.amounts.launches += launches_of(flow, all.is_prefill);
  const bool has_one_token_each = has_encoder_ && !workload_.every_logit;
  const i64 handed_on = has_one_token_each ? mine.sequences : mine.tokens;
  for (const auto& [value, exchange] : priced.handoffs) {
    if (exchange.of_prompt && !all.is_prefill) continue;
    add(exchange, exchange.of_prompt ? mine.tokens : handed_on, comm);
  }
  const bool is_run = std::ranges::any_of(
      flow.steps, [&](const Step& step) { return of_step(step, mine).tokens > 0; });
  for (const WeightGather& gather : priced.gathers) {
    if (is_run) comm.add(gather, plan::CollectiveOp::kAllGather);
  }
  for (const Step& step : flow.steps) {
    const Phase phase = of_step(step, mine);
    if (phase.tokens == 0) continue;
    const i64 tokens = last_only ? phase.sequences : phase.tokens;
    add(step, tokens, comm);
    ops::Pricing pricing{model_,
                         reads_,
                         step,
                         phase,
                         tokens,
                         of_step(step, all).tokens,
                         layer.number,
                         workload_.kv_cache_bits,
                         bits(workload_.activations),
                         price.amounts};
    const Op& op = *step.op->op;
    op.row->price(op, pricing);
    if (std::holds_alternative<Linear>(op.kind)) add_quantising(step, pricing);
  }
}

PhasePrice Sum::of(const std::vector<PricedLayer>& layers, const Phase& phase) const {
  PhasePrice price;
  CommTable comm(mesh_, profile_);
  for (size_t i = 0; i < layers.size(); ++i) add(layers[i], model_.layers[i], phase, price, comm);
  finish(comm, price);
  return price;
}

std::vector<PhasePrice> Sum::of_each(const std::vector<PricedLayer>& layers,
                                     const Phase& phase) const {
  std::vector<PhasePrice> prices(layers.size());
  CommTable comm(mesh_, profile_);
  for (size_t i = 0; i < layers.size(); ++i) {
    add(layers[i], model_.layers[i], phase, prices[i], comm);
    finish(comm, prices[i]);
  }
  return prices;
}

void Sum::finish(CommTable& comm, PhasePrice& price) const {
  price.comm = comm.take_sorted();
  if (profile_ != nullptr) price.roofline = roofline_of(price);
}

/// Throws kUsage for an impossible workload.
void check(const ReplicaWorkload& workload, const Model& model) {
  const bool sensible = workload.batch >= 1 && workload.prompt_len >= 1 && workload.context >= 1;
  const auto tokens = checked_mul(workload.batch, workload.prompt_len);
  const auto cached = checked_mul(workload.batch, workload.context);
  if (!sensible || !tokens || !cached) {
    throw Error(ErrorCode::kUsage,
                "batch, prompt length and context are at least 1, and together below 2^63");
  }
  if (workload.cached < 0 || workload.cached >= workload.prompt_len) {
    throw Error(ErrorCode::kUsage,
                fmt::format("of a prompt of {}, {} cannot be cached",
                            plural(workload.prompt_len, "token"), workload.cached));
  }
  if (workload.cached > 0 && !is_causal(model)) {
    throw Error(ErrorCode::kUsage,
                "the tokens of a prompt attend to later ones, so that no cache has the first ones");
  }
}

/// Returns the prefill of n sequences.
Phase prefill_of(const ReplicaWorkload& workload, i64 n) {
  const i64 computed = workload.prompt_len - workload.cached;
  return {n * computed, n, true, workload.prompt_len, workload.cached};
}

}  // namespace

ForwardPass::ForwardPass(const Model& model, std::span<const TensorSpec> tensors,
                         const StoredWeights& weights, const mesh::Mesh& mesh)
    : model_(model),
      mesh_(mesh),
      over_(weights.over),
      own_tokens_(token_axes(model, weights.computed, mesh)) {
  for (size_t t = 0; t < tensors.size(); ++t) reads_.push_back(weights.read(t, tensors));
  WeightGathers gathers(tensors, weights, mesh);
  SharedFlows flows(model, reads_, weights.computed, mesh, own_tokens_);
  const auto running = running_devices(model, weights.computed);
  stages_ = std::max<i64>(1, pipeline_stages(model, running));
  Stream stream;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    layers_.push_back({flows.of(i, stream), {}, gathers.of(model.layers[i])});
    if (i + 1 == model.layers.size()) break;
    layers_.back().handoffs = handoffs(running[i], running[i + 1], mesh, stream);
  }
}

i64 ForwardPass::sequences(const ReplicaWorkload& workload) const {
  check(workload, model_);
  return ceil_div(workload.batch, mesh::extent(mesh_, over_));
}

PhasePrice ForwardPass::prefill(const ReplicaWorkload& workload,
                                const plan::HardwareProfile* profile) const {
  const i64 n = sequences(workload);
  return Sum(model_, reads_, mesh_, own_tokens_, workload, profile)
      .of(layers_, prefill_of(workload, n));
}

std::vector<PhasePrice> ForwardPass::prefill_layers(const ReplicaWorkload& workload,
                                                    const plan::HardwareProfile* profile) const {
  const i64 n = sequences(workload);
  return Sum(model_, reads_, mesh_, own_tokens_, workload, profile)
      .of_each(layers_, prefill_of(workload, n));
}

PhasePrice ForwardPass::decode(const ReplicaWorkload& workload,
                               const plan::HardwareProfile* profile) const {
  const i64 n = sequences(workload);
  return Sum(model_, reads_, mesh_, own_tokens_, workload, profile)
      .of(layers_, {n, n, false, workload.context});
}

std::vector<CommRow> training_comm(const Model& model, std::span<const TensorSpec> tensors,
                                   const StoredWeights& weights, const mesh::Mesh& mesh,
                                   const plan::HardwareProfile* profile) {
  WeightGathers gathers(tensors, weights, mesh);
  CommTable comm(mesh, profile);
  for (const Layer& layer : model.layers) {
    for (const WeightGather& gather : gathers.of(layer)) {
      comm.add(gather, plan::CollectiveOp::kAllGather);  // forward
      comm.add(gather, plan::CollectiveOp::kAllGather);  // backward
      comm.add(gather, plan::CollectiveOp::kReduceScatter);
    }
  }
  return comm.take_sorted();
}

}  // namespace shardtool::model
