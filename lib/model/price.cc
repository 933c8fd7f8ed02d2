#include "lib/model/price.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "lib/base/dtype.h"
#include "lib/base/error.h"
#include "lib/model/flow/handoff.h"
#include "lib/model/flow/mesh_cuts.h"
#include "lib/model/flow/window.h"

namespace shardtool::model {
namespace {

/// How many tokens a pass has, and how many positions each attends to. Behind an encoder, which
/// reads the prompt, a prefill has one token of each sequence.
struct Phase {
  i64 tokens = 0;
  i64 sequences = 0;
  bool is_prefill = false;
  i64 context = 0;

  /// Positions that a token attends to on average, of at most `window`.
  double positions(const Attention& attention, std::optional<i64> window) const {
    const i64 reach = window ? std::min(*window, context) : context;
    const bool is_chunked = attention.window && attention.window->kind == Window::Kind::kChunked;
    if (window && is_chunked) return in_chunks(reach);
    if (!is_prefill) return static_cast<double>(reach);
    // Token t of the prompt sees min(t, reach) positions; others see as many on both sides.
    const double rising = static_cast<double>(reach) * static_cast<double>(reach + 1) / 2;
    const double flat = static_cast<double>(context - reach) * static_cast<double>(reach);
    const double back = (rising + flat) / static_cast<double>(context);
    return attention.causal ? back : 2 * back - 1;
  }

 private:
  /// Token t sees t mod size + 1 positions.
  double in_chunks(i64 size) const {
    const auto first = [](i64 n) {
      return static_cast<double>(n) * static_cast<double>(n + 1) / 2;
    };
    if (!is_prefill) return static_cast<double>((context - 1) % size + 1);
    const double sum = static_cast<double>(context / size) * first(size) + first(context % size);
    return sum / static_cast<double>(context);
  }
};

double bytes_of(i64 elements, Dtype dtype) {
  return static_cast<double>(elements) * bits(dtype) / 8;
}

/// What a device multiplies weights of this dtype as; 8-bit weights with 8-bit activations.
plan::Arithmetic arithmetic_of(Dtype dtype) {
  const DtypeInfo& info = dtype_info(dtype);
  if (info.bits > 8) return plan::Arithmetic::kBf16;
  if (info.kind != DtypeKind::kFloat) return plan::Arithmetic::kInt8;
  return info.bits == 8 ? plan::Arithmetic::kFp8 : plan::Arithmetic::kFp4;
}

double& flops_of(Amounts& amounts, plan::Arithmetic arithmetic) {
  return amounts.flops[static_cast<size_t>(arithmetic)];
}

/// What a token's experts are chosen of.
const Dim& all_of(const Experts& experts) {
  return experts.among ? *experts.among : experts.experts;
}

bool is_launched(const Op::Kind& kind) {
  if (const auto* norm = std::get_if<Norm>(&kind)) return !norm->per_head;
  return std::holds_alternative<Attention>(kind) || std::holds_alternative<Experts>(kind) ||
         std::holds_alternative<Router>(kind) || std::holds_alternative<Embed>(kind) ||
         std::holds_alternative<Convolve>(kind) || std::holds_alternative<ConvolveFrames>(kind) ||
         std::holds_alternative<Pool>(kind) || std::holds_alternative<BucketScores>(kind) ||
         std::holds_alternative<Recurrence>(kind);
}

/// Amounts::launches of one layer; those of an encoder where it runs.
i64 launches_of(const LayerFlow& flow, bool runs_encoder) {
  i64 launches = 0;
  std::set<std::string> multiplied;  // values that are there as they were
  for (const Step& step : flow.steps) {
    if (step.of_prompt && !runs_encoder) continue;
    const Op& op = *step.op->op;
    if (std::holds_alternative<Linear>(op.kind)) {
      launches += multiplied.insert(op.in.front()).second ? 1 : 0;
    } else {
      launches += is_launched(op.kind) ? 1 : 0;
    }
    for (const std::string& made : op.out) multiplied.erase(made);
  }
  return launches;
}

bool is_causal(const Model& model) {
  for (const Layer& layer : model.layers) {
    if (layer.beside) continue;
    for (const BoundOp& bound : layer.ops) {
      const auto* attention = std::get_if<Attention>(&bound.op->kind);
      if (attention != nullptr) return attention->causal;
    }
  }
  return true;
}

/// Sums up what a phase moves and does, layer by layer.
class Sum {
 public:
  Sum(const Model& model, std::span<const TensorSpec> tensors, const mesh::Mesh& mesh,
      mesh::Over dealt, const Workload& workload, const plan::HardwareProfile* profile)
      : model_(model),
        tensors_(tensors),
        mesh_(mesh),
        dealt_(std::move(dealt)),
        workload_(workload),
        profile_(profile),
        causal_(is_causal(model)),
        has_encoder_(std::ranges::any_of(model.layers, &Layer::of_prompt)) {}

  PhasePrice of(const std::vector<LayerFlow>& flows, const Phase& phase) const;

 private:
  using Key = std::tuple<std::string, plan::CollectiveOp, i64>;  ///< axis, op, payload
  using Rows = std::map<Key, CommRow>;

  /// Of `n` tokens or sequences, those of the device that has most.
  i64 share_of(i64 n) const { return ceil_div(n, mesh::extent(mesh_, dealt_)); }
  void add(const Step& step, i64 tokens, Rows& rows) const;
  void add(const Exchange& exchange, i64 tokens, Rows& rows) const;
  void add(const LayerFlow& flow, const Layer& layer, const Phase& all, PhasePrice& price,
           Rows& rows) const;
  Phase of_device(const Phase& all) const;
  Phase of_step(const Step& step, const Phase& phase) const;
  plan::Collective dispatch(const Experts& op, const Exchange& exchange, i64 tokens) const;
  void add(const mesh::Over& over, const plan::Collective& collective, Rows& rows) const;
  plan::Group group(const mesh::Over& over) const;
  i64 activation_bytes(i64 elements, i64 tokens) const;
  void add(const Step& step, const Phase& phase, i64 tokens, i64 layer, Amounts& sum) const;
  void add_experts(const Experts& op, const Step& step, i64 tokens, Amounts& sum) const;
  i64 add_index(const PositionIndex& index, double positions, i64 kept, const Phase& phase,
                Amounts& sum) const;
  void add_attention(const Attention& op, const Step& step, const Phase& phase, i64 layer,
                     Amounts& sum) const;
  void add_recurrence(const Recurrence& op, const Step& step, const Phase& phase,
                      Amounts& sum) const;
  plan::Arithmetic arithmetic(const Step& step) const;
  double weight_bytes(const Step& step) const;
  Roofline roofline_of(const PhasePrice& price) const;

  const Model& model_;
  std::span<const TensorSpec> tensors_;
  const mesh::Mesh& mesh_;
  mesh::Over dealt_;  ///< the axes whose devices have tokens of their own
  const Workload& workload_;
  const plan::HardwareProfile* profile_;
  bool causal_;
  bool has_encoder_;
};

plan::Group Sum::group(const mesh::Over& over) const {
  return plan::group_along(mesh_, over, profile_ == nullptr ? mesh_.size() : profile_->domain());
}

i64 Sum::activation_bytes(i64 elements, i64 tokens) const {
  const auto all = checked_mul(elements, tokens);
  const auto bits_all = all ? checked_mul(*all, bits(workload_.activations)) : all;
  if (!bits_all) throw Error(ErrorCode::kLimit, "the activations of a pass are above 2^63 bits");
  return ceil_div(*bits_all, 8);
}

void Sum::add(const Step& step, i64 tokens, Rows& rows) const {
  const auto* experts = std::get_if<Experts>(&step.op->op->kind);
  for (const Exchange& exchange : exchanges(step)) {
    if (experts != nullptr && exchange.move == plan::Move::kAllToAll) {
      add(exchange.over, dispatch(*experts, exchange, tokens), rows);
    } else {
      add(exchange, tokens, rows);
    }
  }
}

void Sum::add(const Exchange& exchange, i64 tokens, Rows& rows) const {
  const auto collective = plan::collective_for(exchange.move, group(exchange.over),
                                               activation_bytes(exchange.elements, tokens));
  if (collective) add(exchange.over, *collective, rows);
}

/// Tokens to the devices that their experts are expected to be on, or back; as if all of them were
/// experts that compute something.
plan::Collective Sum::dispatch(const Experts& op, const Exchange& exchange, i64 tokens) const {
  const plan::Group devices = group(exchange.over);
  const double each =
      plan::expected_destinations(model_.size(op.experts), model_.size(op.top_k), devices.devices);
  const double sent = each * static_cast<double>(activation_bytes(exchange.elements, tokens));
  return {plan::CollectiveOp::kAllToAll, devices, static_cast<i64>(std::ceil(sent))};
}

void Sum::add(const mesh::Over& over, const plan::Collective& collective, Rows& rows) const {
  CommRow& row = rows[{mesh::to_string(over), collective.op, collective.payload_bytes}];
  if (row.count++ > 0) return;
  row.axis = mesh::to_string(over);
  row.collective = collective;
  row.wire_bytes_per_rank = wire_bytes(collective);
  if (profile_ != nullptr) row.time = plan::time_of(collective, *profile_);
}

/// At the dtype of the op's first weight; companions of quantised weights count as nothing.
double Sum::weight_bytes(const Step& step) const {
  const auto& weights = step.op->weights;
  if (weights.empty() || weights.front().empty()) return 0;
  return bytes_of(step.work.weight_elements, tensors_[weights.front().front()].dtype);
}

plan::Arithmetic Sum::arithmetic(const Step& step) const {
  const auto& weights = step.op->weights;
  if (weights.empty() || weights.front().empty()) return plan::Arithmetic::kBf16;
  return arithmetic_of(tensors_[weights.front().front()].dtype);
}

/// Every token chooses top_k experts; a device computes the chosen ones that it has, and reads each
/// that some token chose.
void Sum::add_experts(const Experts& op, const Step& step, i64 tokens, Amounts& sum) const {
  const double share =
      static_cast<double>(model_.size(op.top_k)) / static_cast<double>(model_.size(all_of(op)));
  const double n = static_cast<double>(tokens);
  flops_of(sum, arithmetic(step)) += 2 * n * share * static_cast<double>(step.work.weight_elements);
  sum.weight_bytes += weight_bytes(step) * (1 - std::pow(1 - share, n));
}

/// Scores of all positions, or entries, by keys that are kept of each. Returns how many of them are
/// attended to.
i64 Sum::add_index(const PositionIndex& index, double positions, i64 kept, const Phase& phase,
                   Amounts& sum) const {
  if (index.made_before) return model_.size(index.top_k);
  const i64 dim = model_.size(index.dim);
  flops_of(sum, plan::Arithmetic::kBf16) += 2 * static_cast<double>(phase.tokens) * positions *
                                            static_cast<double>(model_.size(index.heads) * dim);
  sum.cache_bytes += static_cast<double>(phase.sequences * kept) *
                     static_cast<double>(dim * workload_.kv_cache_bits) / 8;
  return model_.size(index.top_k);
}

void Sum::add_attention(const Attention& op, const Step& step, const Phase& phase, i64 layer,
                        Amounts& sum) const {
  const Work& work = step.work;
  auto window = window_of(op, model_.config, layer);
  double entries = 0;
  i64 kept_entries = 0;
  if (op.entries) {
    const i64 every = model_.size(*op.entries);
    entries = phase.positions(op, std::nullopt) / static_cast<double>(every);
    kept_entries = phase.context / every;
    if (op.index) {
      const i64 most = add_index(*op.index, entries, kept_entries, phase, sum);
      entries = std::min(entries, static_cast<double>(most));
      kept_entries = std::min(kept_entries, most);
    }
  } else if (op.index) {
    window = add_index(*op.index, phase.positions(op, window), phase.context, phase, sum);
  }
  const double positions = phase.positions(op, window) + entries;
  flops_of(sum, plan::Arithmetic::kBf16) +=
      2 * static_cast<double>(phase.tokens) * positions *
      static_cast<double>(work.input_elements + work.output_elements);
  const i64 kept = (window ? std::min(*window, phase.context) : phase.context) + kept_entries;
  sum.cache_bytes += static_cast<double>(phase.sequences * kept) *
                     static_cast<double>(work.cache_elements * workload_.kv_cache_bits) / 8;
}

/// A token by token pass over the state: of each element a decay, a product that is added, and one
/// that is read; with the delta rule one more that is read. Kernels that take tokens in chunks do
/// more. Every sequence's state is read and written, in f32.
void Sum::add_recurrence(const Recurrence& op, const Step& step, const Phase& phase,
                         Amounts& sum) const {
  constexpr double kStateBytes = 4;
  const double state =
      static_cast<double>(step.work.output_elements) * static_cast<double>(model_.size(op.key_dim));
  const double flops = op.rule == kernels::RecurrenceRule::kDelta ? 7 : 5;
  flops_of(sum, plan::Arithmetic::kBf16) += flops * static_cast<double>(phase.tokens) * state;
  sum.cache_bytes += 2 * static_cast<double>(phase.sequences) * kStateBytes * state;
}

/// `tokens` are the device's own, but of experts those of all.
void Sum::add(const Step& step, const Phase& phase, i64 tokens, i64 layer, Amounts& sum) const {
  const Work& work = step.work;
  const Op::Kind& kind = step.op->op->kind;
  if (const auto* experts = std::get_if<Experts>(&kind)) {
    add_experts(*experts, step, tokens, sum);
    return;
  }
  if (const auto* attention = std::get_if<Attention>(&kind)) {
    add_attention(*attention, step, phase, layer, sum);
    return;
  }
  if (const auto* recurrence = std::get_if<Recurrence>(&kind)) {
    add_recurrence(*recurrence, step, phase, sum);
    return;
  }
  const double n = static_cast<double>(tokens);
  if (const auto* scores = std::get_if<BucketScores>(&kind)) {
    // The keys of the buckets are made once, whatever the number of tokens.
    const auto buckets = static_cast<double>(model_.size(scores->buckets.count));
    const auto rows = n + static_cast<double>(model_.size(scores->size));
    flops_of(sum, arithmetic(step)) +=
        2 * buckets * static_cast<double>(work.input_elements) * rows;
    sum.weight_bytes += weight_bytes(step);
    return;
  }
  if (std::holds_alternative<Embed>(kind)) {
    const Dtype dtype = tensors_[step.op->weights.front().front()].dtype;
    sum.weight_bytes += n * bytes_of(work.output_elements, dtype);
    return;
  }
  const auto* convolve = std::get_if<ConvolveFrames>(&kind);
  const i64 times =
      convolve == nullptr ? 1 : model_.size(convolve->frames) / model_.size(convolve->stride);
  flops_of(sum, arithmetic(step)) += 2 * n * static_cast<double>(times * work.weight_elements);
  sum.weight_bytes += weight_bytes(step);
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

/// Of a model with an encoder: its own steps read the prompt, in a prefill; other steps have one
/// token of each sequence, which attends to the prompt or to those before it.
Phase Sum::of_step(const Step& step, const Phase& phase) const {
  if (!has_encoder_ || (step.of_prompt && phase.is_prefill)) return phase;
  if (step.of_prompt) return {0, 0, false, 0};
  const i64 before = phase.is_prefill ? 1 : phase.context;
  return {phase.sequences, phase.sequences, false,
          step.reads_prompt ? workload_.prompt_len : before};
}

void Sum::add(const LayerFlow& flow, const Layer& layer, const Phase& all, PhasePrice& price,
              Rows& rows) const {
  if (layer.beside) return;
  const Phase mine = of_device(all);
  const bool last_only = causal_ && layer.block == "end";
  price.amounts.launches += launches_of(flow, all.is_prefill);
  const i64 handed_on = has_encoder_ ? mine.sequences : mine.tokens;
  for (const auto& [value, exchange] : flow.handoffs) {
    if (exchange.of_prompt && !all.is_prefill) continue;
    add(exchange, exchange.of_prompt ? mine.tokens : handed_on, rows);
  }
  for (const Step& step : flow.steps) {
    const Phase phase = of_step(step, mine);
    if (phase.tokens == 0) continue;
    const bool is_dealt = std::holds_alternative<Experts>(step.op->op->kind);
    const i64 tokens = last_only ? phase.sequences : phase.tokens;
    add(step, tokens, rows);
    add(step, phase, is_dealt ? of_step(step, all).tokens : tokens, layer.number, price.amounts);
  }
}

PhasePrice Sum::of(const std::vector<LayerFlow>& flows, const Phase& phase) const {
  PhasePrice price;
  Rows rows;
  for (size_t i = 0; i < flows.size(); ++i) add(flows[i], model_.layers[i], phase, price, rows);
  for (auto& [key, row] : rows) price.comm.push_back(std::move(row));
  if (profile_ != nullptr) price.roofline = roofline_of(price);
  return price;
}

i64 tokens_of(const Workload& workload) {
  const bool sensible = workload.batch >= 1 && workload.prompt_len >= 1 && workload.context >= 1;
  const auto tokens = checked_mul(workload.batch, workload.prompt_len);
  const auto cached = checked_mul(workload.batch, workload.context);
  if (sensible && tokens && cached) return *tokens;
  throw Error(ErrorCode::kUsage,
              "batch, prompt length and context are at least 1, and together below 2^63");
}

}  // namespace

Price price(const Model& model, std::span<const TensorSpec> tensors, const LayoutOf& layouts,
            const mesh::Mesh& mesh, const Workload& workload,
            const plan::HardwareProfile* profile) {
  const i64 tokens = tokens_of(workload);
  const mesh::Over own_tokens = token_axes(model, layouts, mesh);
  std::vector<LayerFlow> flows;
  Stream stream;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    flows.push_back(flow(model, i, layouts, mesh, own_tokens, stream));
    if (i + 1 == model.layers.size()) break;
    flows.back().handoffs = handoffs(model, i, layouts, mesh, stream);
  }
  const Sum sum(model, tensors, mesh, own_tokens, workload, profile);
  return {sum.of(flows, {tokens, workload.batch, true, workload.prompt_len}),
          sum.of(flows, {workload.batch, workload.batch, false, workload.context})};
}

}  // namespace shardtool::model
