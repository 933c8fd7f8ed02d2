#include "shardtool/model/price.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "shardtool/base/dtype.h"
#include "shardtool/base/error.h"
#include "shardtool/model/handoff.h"
#include "shardtool/model/window.h"

namespace shardtool::model {
namespace {

constexpr double kUsPerSecond = 1e6;

/// How many tokens a pass has, and how many positions each attends to.
struct Phase {
  i64 tokens = 0;
  i64 sequences = 0;
  bool is_prefill = false;
  i64 context = 0;

  /// Positions that a token attends to on average, of at most `window`.
  double positions(bool causal, std::optional<i64> window) const {
    const i64 reach = window ? std::min(*window, context) : context;
    if (!is_prefill || !causal) return static_cast<double>(reach);
    // Token t of the prompt sees min(t, reach) positions.
    const double rising = static_cast<double>(reach) * static_cast<double>(reach + 1) / 2;
    const double flat = static_cast<double>(context - reach) * static_cast<double>(reach);
    return (rising + flat) / static_cast<double>(context);
  }
};

double bytes_of(i64 elements, Dtype dtype) {
  return static_cast<double>(elements) * bits(dtype) / 8;
}

bool is_causal(const Model& model) {
  for (const Layer& layer : model.layers) {
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
  Sum(const Model& model, const mapping::ModelConfig& config, std::span<const TensorSpec> tensors,
      const mesh::Mesh& mesh, const Workload& workload, const plan::HardwareProfile* profile)
      : model_(model),
        config_(config),
        tensors_(tensors),
        mesh_(mesh),
        workload_(workload),
        profile_(profile),
        causal_(is_causal(model)) {}

  PhasePrice of(const std::vector<LayerFlow>& flows, const Phase& phase) const;

 private:
  using Key = std::tuple<std::string, plan::CollectiveOp, i64>;  ///< axis, op, payload
  using Rows = std::map<Key, CommRow>;

  void add(const Exchange& exchange, i64 tokens, Rows& rows) const;
  void add(const Step& step, const Phase& phase, i64 tokens, i64 layer, Amounts& sum) const;
  void add_experts(const Experts& op, const Step& step, i64 tokens, Amounts& sum) const;
  double weight_bytes(const Step& step) const;
  Roofline roofline_of(const PhasePrice& price) const;

  const Model& model_;
  const mapping::ModelConfig& config_;
  std::span<const TensorSpec> tensors_;
  const mesh::Mesh& mesh_;
  const Workload& workload_;
  const plan::HardwareProfile* profile_;
  bool causal_;
};

void Sum::add(const Exchange& exchange, i64 tokens, Rows& rows) const {
  const i64 domain = profile_ == nullptr ? mesh_.size() : profile_->domain();
  const auto elements = checked_mul(exchange.elements, tokens);
  const auto bits_all = elements ? checked_mul(*elements, bits(workload_.activations)) : elements;
  if (!bits_all) throw Error(ErrorCode::kLimit, "the activations of a pass are above 2^63 bits");
  const auto collective = plan::collective_for(
      exchange.move, plan::group_along(mesh_, exchange.over, domain), ceil_div(*bits_all, 8));
  if (!collective) return;
  CommRow& row = rows[{mesh::to_string(exchange.over), collective->op, collective->payload_bytes}];
  if (row.count++ > 0) return;
  row.axis = mesh::to_string(exchange.over);
  row.collective = *collective;
  row.wire_bytes_per_rank = wire_bytes(*collective);
  if (profile_ != nullptr) row.time = plan::time_of(*collective, *profile_);
}

/// At the dtype of the op's first weight; companions of quantised weights count as nothing.
double Sum::weight_bytes(const Step& step) const {
  const auto& weights = step.op->weights;
  if (weights.empty() || weights.front().empty()) return 0;
  return bytes_of(step.work.weight_elements, tensors_[weights.front().front()].dtype);
}

/// Every token chooses top_k experts; a device computes the chosen ones that it has, and reads each
/// that some token chose.
void Sum::add_experts(const Experts& op, const Step& step, i64 tokens, Amounts& sum) const {
  const double share =
      static_cast<double>(model_.size(op.top_k)) / static_cast<double>(model_.size(op.experts));
  const double n = static_cast<double>(tokens);
  sum.flops += 2 * n * share * static_cast<double>(step.work.weight_elements);
  sum.weight_bytes += weight_bytes(step) * (1 - std::pow(1 - share, n));
}

void Sum::add(const Step& step, const Phase& phase, i64 tokens, i64 layer, Amounts& sum) const {
  const Work& work = step.work;
  const double n = static_cast<double>(tokens);
  if (const auto* experts = std::get_if<Experts>(&step.op->op->kind)) {
    add_experts(*experts, step, tokens, sum);
    return;
  }
  if (const auto* attention = std::get_if<Attention>(&step.op->op->kind)) {
    const auto window = window_of(*attention, config_, layer);
    const double positions = phase.positions(attention->causal, window);
    sum.flops +=
        2 * n * positions * static_cast<double>(work.input_elements + work.output_elements);
    const i64 kept = window ? std::min(*window, phase.context) : phase.context;
    sum.cache_bytes += static_cast<double>(phase.sequences * kept) *
                       static_cast<double>(work.cache_elements * workload_.kv_cache_bits) / 8;
    return;
  }
  const bool looks_up = std::holds_alternative<Embed>(step.op->op->kind);
  if (looks_up) {
    const Dtype dtype = tensors_[step.op->weights.front().front()].dtype;
    sum.weight_bytes += n * bytes_of(work.output_elements, dtype);
    return;
  }
  sum.flops += 2 * n * static_cast<double>(work.weight_elements);
  sum.weight_bytes += weight_bytes(step);
}

Roofline Sum::roofline_of(const PhasePrice& price) const {
  double comm_us = 0;
  for (const CommRow& row : price.comm) comm_us += static_cast<double>(row.count) * row.time.us;
  return roofline(price.amounts, profile_->rates.bf16_tflops * 1e12 * profile_->compute_efficiency,
                  profile_->memory_gb_per_s * 1e9 * profile_->memory_efficiency, comm_us);
}

PhasePrice Sum::of(const std::vector<LayerFlow>& flows, const Phase& phase) const {
  PhasePrice price;
  Rows rows;
  for (size_t i = 0; i < flows.size(); ++i) {
    const Layer& layer = model_.layers[i];
    const bool last_only = causal_ && layer.block == "end";
    const i64 tokens = last_only ? phase.sequences : phase.tokens;
    for (const Exchange& exchange : exchanges(flows[i])) add(exchange, tokens, rows);
    for (const Step& step : flows[i].steps) add(step, phase, tokens, layer.number, price.amounts);
  }
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

std::string_view to_string(Roofline::Bound bound) {
  constexpr auto kNames = std::to_array<std::string_view>({"compute", "memory", "comm"});
  return kNames[static_cast<size_t>(bound)];
}

Roofline roofline(const Amounts& amounts, double flops_per_s, double bytes_per_s, double comm_us) {
  Roofline roof;
  const double weights_us = amounts.weight_bytes / bytes_per_s * kUsPerSecond;
  const double cache_us = amounts.cache_bytes / bytes_per_s * kUsPerSecond;
  roof.compute_us = amounts.flops / flops_per_s * kUsPerSecond;
  roof.memory_us = weights_us + cache_us;
  roof.comm_us = comm_us;
  roof.step_us = comm_us + cache_us + std::max(roof.compute_us, weights_us);
  const double longest = std::max({roof.compute_us, roof.memory_us, roof.comm_us});
  if (longest == roof.compute_us) roof.bound = Roofline::Bound::kCompute;
  if (longest == roof.comm_us) roof.bound = Roofline::Bound::kComm;
  if (longest == roof.memory_us) roof.bound = Roofline::Bound::kMemory;
  return roof;
}

Price price(const Model& model, const mapping::ModelConfig& config,
            std::span<const TensorSpec> tensors, const LayoutOf& layouts, const mesh::Mesh& mesh,
            const Workload& workload, const plan::HardwareProfile* profile) {
  const i64 tokens = tokens_of(workload);
  std::vector<LayerFlow> flows;
  Value x;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    flows.push_back(flow(model, model.layers[i], layouts, mesh, x));
    if (i + 1 == model.layers.size()) break;
    flows.back().handoff = handoff(model.layers[i], model.layers[i + 1], layouts, mesh, x);
  }
  const Sum sum(model, config, tensors, mesh, workload, profile);
  return {sum.of(flows, {tokens, workload.batch, true, workload.prompt_len}),
          sum.of(flows, {workload.batch, workload.batch, false, workload.context})};
}

}  // namespace shardtool::model
