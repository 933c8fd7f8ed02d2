#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardtool/base/tensor_spec.h"
#include "shardtool/model/flow.h"
#include "shardtool/plan/collective_time.h"
#include "shardtool/plan/hardware_profile.h"

namespace shardtool::model {

/// What a model is run on, per replica of it.
struct Workload {
  i64 batch = 1;         ///< sequences
  i64 prompt_len = 512;  ///< tokens of each that a prefill reads
  i64 context = 512;     ///< positions of each that a decode step attends to
  Dtype activations = Dtype::kBF16;
  i64 kv_cache_bits = 16;  ///< of one element
};

/// Equal collectives of one forward pass.
struct CommRow {
  std::string axis;             ///< "tp", or "ep*tp" of a joint one
  plan::Collective collective;  ///< of one call
  i64 count = 0;                ///< calls per forward pass
  i64 wire_bytes_per_rank = 0;  ///< of one call
  plan::CollectiveTime time;    ///< of one call; 0 without a profile
};

/// A lower bound of the time: every part at its rate, one after the other where they must be.
///     step = comm + launches + cache / bandwidth + max(flops / rate, weights / bandwidth)
struct Roofline {
  enum class Bound { kCompute, kMemory, kComm, kLaunch };
  double compute_us = 0;
  double memory_us = 0;  ///< weights and cache
  double comm_us = 0;
  double launch_us = 0;  ///< of all ops together
  double step_us = 0;
  Bound bound = Bound::kMemory;                           ///< the largest of the four
  plan::Arithmetic arithmetic = plan::Arithmetic::kBf16;  ///< of most of the compute
};
std::string_view to_string(Roofline::Bound bound);

/// What one device does in a pass through all layers, the busiest one of each op.
struct Amounts {
  /// By the kind of numbers: that of the weights, bf16 for what multiplies activations.
  std::array<double, plan::kArithmetics.size()> flops{};
  double weight_bytes = 0;  ///< read; of experts those that some token chose, on average
  double cache_bytes = 0;   ///< read
  /// Products (those of one value are one), attentions, experts, norms and look-ups; what is done
  /// element by element is taken to be part of them.
  i64 launches = 0;

  double all_flops() const;
};
/// On the profile, with its efficiencies; comm_us is added as it is.
Roofline roofline(const Amounts& amounts, const plan::HardwareProfile& profile, double comm_us);

struct PhasePrice {
  std::vector<CommRow> comm;  ///< by axis, op and payload
  Amounts amounts;
  std::optional<Roofline> roofline;  ///< with a profile
};

struct Price {
  PhasePrice prefill;
  PhasePrice decode;
};

/// The price of one forward pass, for all tokens of the prompts and for one more token of each
/// sequence. The head counts one position per sequence after a causal model. Ranks fill the
/// profile's domains in order; products are at its rate for the weights' numbers; without a profile
/// nothing has a time.
///
/// Along token_axes the sequences are dealt out: each device attends to its own, and sends every
/// token to the devices of its experts and has the results back, an all_to_all each way, of the
/// devices that it is expected to need (plan::expected_destinations). Experts compute the tokens
/// that they are expected to get, top_k / experts of all.
///
/// An encoder reads the prompt in the prefill, once; what stands behind it has one token of each
/// sequence then, too. A decode step attends to the prompt's positions there.
///
/// Dropped or unknown tensors have no place in it: `layouts` must know every tensor that the model
/// reads. Throws what flow throws. O(ops * devices).
Price price(const Model& model, std::span<const TensorSpec> tensors, const LayoutOf& layouts,
            const mesh::Mesh& mesh, const Workload& workload, const plan::HardwareProfile* profile);

}  // namespace shardtool::model
