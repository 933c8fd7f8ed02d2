#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/model/roofline.h"
#include "lib/plan/collective/collective_time.h"

namespace shardtool::model {

/// The workload of one replica of a model.
struct ReplicaWorkload {
  i64 batch = 1;         ///< number of sequences
  i64 prompt_len = 512;  ///< tokens per sequence in a prefill
  i64 context = 512;     ///< positions per sequence in a decode step's attention
  i64 cached = 0;        ///< first tokens of each prompt that the cache has before its prefill
  Dtype activations = Dtype::kBF16;
  i64 kv_cache_bits = 16;  ///< bits per cached element
  /// The residual stream is cut by tokens over the axes that reduce it, where every device has one:
  /// reduce_scatter and all_gather take the place of an all_reduce (Korthikanti et al. 2022,
  /// section 4.2.2). The whole norms are still counted.
  bool sequence_parallel = false;
  /// The head computes every position, as a loss needs, and leaves the logits cut: the loss reads
  /// them where they are, and exchanges a few numbers per token, which are not counted. Else the
  /// head computes one position per sequence and gathers its logits. After an encoder all layers
  /// compute every position of an answer that is as long as the prompt. For passes over a prompt.
  bool every_logit = false;
};

/// Equal collectives of one forward pass.
struct CommRow {
  std::string axis;             ///< "tp", or "ep*tp" if along both
  plan::Collective collective;  ///< one call
  i64 count = 0;                ///< calls per forward pass
  i64 wire_bytes_per_rank = 0;  ///< per call
  plan::CollectiveTime time;    ///< per call; 0 without a profile
};

struct PhasePrice {
  std::vector<CommRow> comm;  ///< sorted by axis, op and payload
  Amounts amounts;
  std::optional<Roofline> roofline;  ///< only with a profile
};

struct Price {
  PhasePrice prefill;
  PhasePrice decode;
};

}  // namespace shardtool::model
