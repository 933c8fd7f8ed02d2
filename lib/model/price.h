#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardtool/base/tensor_spec.h"
#include "shardtool/mapping/config.h"
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
///     step = comm + cache / bandwidth + max(flops / rate, weights / bandwidth)
struct Roofline {
  enum class Bound { kCompute, kMemory, kComm };
  double compute_us = 0;
  double memory_us = 0;  ///< weights and cache
  double comm_us = 0;
  double step_us = 0;
  Bound bound = Bound::kMemory;  ///< the largest of the three
};
std::string_view to_string(Roofline::Bound bound);

/// What one device does in a pass through all layers, the busiest one of each op.
struct Amounts {
  double flops = 0;
  double weight_bytes = 0;  ///< read; of experts those that some token chose, on average
  double cache_bytes = 0;   ///< read
};
/// At these rates; comm_us is added as it is.
Roofline roofline(const Amounts& amounts, double flops_per_s, double bytes_per_s, double comm_us);

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
/// profile's domains in order; compute is at its bf16 rate; without a profile nothing has a time.
/// Dropped or unknown tensors have no place in it: `layouts` must know every tensor that the model
/// reads. Throws what flow throws. O(ops * devices).
Price price(const Model& model, const mapping::ModelConfig& config,
            std::span<const TensorSpec> tensors, const LayoutOf& layouts, const mesh::Mesh& mesh,
            const Workload& workload, const plan::HardwareProfile* profile);

}  // namespace shardtool::model
