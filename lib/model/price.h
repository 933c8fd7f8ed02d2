#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/model/flow/flow.h"
#include "lib/model/roofline.h"
#include "lib/plan/collective/collective_time.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::model {

/// The workload of one replica of a model.
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
/// Along token_axes every device has sequences of its own: it attends to these, sends every token
/// to the devices of its experts and receives the results, an all_to_all each way, with the
/// expected number of devices (plan::expected_destinations). Experts compute the expected number of
/// tokens, top_k / experts of all.
///
/// An encoder reads the prompt in the prefill, once; layers behind it have one token of each
/// sequence in a prefill, too. Their decode step attends to the prompt's positions.
///
/// `layouts` must know every tensor that the model reads, so none is dropped or unknown. Throws
/// what flow throws. O(ops * devices).
Price price(const Model& model, std::span<const TensorSpec> tensors, const LayoutOf& layouts,
            const mesh::Mesh& mesh, const Workload& workload, const plan::HardwareProfile* profile);

}  // namespace shardtool::model
