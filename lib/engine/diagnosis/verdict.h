#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/engine/run/computed_by.h"
#include "lib/engine/run/fabric.h"

namespace shardtool::engine {

/// Where two runs of one layer first compute different things that matter.
struct Fault {
  std::string tier;                  ///< "field", "f64"
  std::string layer;                 ///< "start", "end", "decoder 3"
  std::string op;                    ///< "linear", "attention", ...
  std::string value;                 ///< what the op makes, in the graph's words
  std::vector<std::string> tensors;  ///< that the op reads
  std::string tensor;                ///< that is not what it is to be, where one was found
  i64 rank = -1;                     ///< the first device that differs
  i64 token = -1;                    ///< row of the value
  i64 feature = -1;                  ///< global
  i64 mismatches = 0;                ///< elements of the layer's result, over all devices
  std::string diagnosis;             ///< in words; empty until the bytes were looked at
  size_t layer_index = 0;
  size_t step = 0;
};

/// What one number system found.
struct TierVerdict {
  std::string name;     ///< "field", "f64"
  std::string verdict;  ///< "pass", "fail", "undecided"
  i64 checked = 0;      ///< numbers that were compared
  i64 mismatches = 0;
  double worst = 0;  ///< largest difference over the RMS of the value; of floats
  /// Of a native run, the largest |whole - exact| / |exact| of a layer's result.
  double rounding = 0;
  std::vector<Fault> faults;  ///< at most one per layer
  /// Values inside layers that differ although the layer's result does not: the shards compute the
  /// same function in another order.
  i64 reordered = 0;
  std::vector<size_t> reordered_layers;
};

/// A weight with numbers that are none.
struct OddWeight {
  std::string tensor;
  bool is_shard = false;
  i64 rank = -1;
  i64 nan = 0;
  i64 infinite = 0;
};

struct CollectiveRow {
  std::string tier;  ///< "field", ...
  std::string axis;
  plan::Move move = plan::Move::kAllReduce;
  i64 predicted_count = 0, counted = 0;
  i64 predicted_elements = 0, counted_elements = 0;
  i64 element_bytes = 0;

  bool agrees() const {
    return predicted_count == counted && predicted_elements == counted_elements;
  }
};

/// Whether stored bytes are those of the whole model at the same places, padding aside.
struct ComparedBytes {
  struct Part {
    std::string tensor;
    i64 rank = 0;
  };
  i64 parts = 0;  ///< what a device has of a tensor that both sides have alike
  i64 differing = 0;
  std::vector<Part> different;  ///< by tensor and rank
};

/// Stored bytes against the hashes that a manifest records.
struct RecordedBytes {
  static constexpr i64 kWhole = -1;  ///< in place of a rank: all shards together
  struct Difference {
    std::string tensor;
    i64 rank = kWhole;
    std::string found, expected;  ///< "XXH3-128 ..." of a part, "CRC-64 ..." of a whole tensor
  };
  std::vector<Difference> different;
  /// Tensors of which some part did not pass from front to back, and was held against nothing.
  std::set<size_t> unread;
};

struct Verdict {
  std::vector<TierVerdict> tiers;
  std::vector<CollectiveRow> collectives;  ///< of every tier
  std::vector<OddWeight> odd_weights;
  ComparedBytes bytes;
  RecordedBytes recorded;
  std::uint64_t digest = 0;    ///< of what the shards computed in the field
  std::vector<size_t> tested;  ///< tensors of the shards that some result depends on
  /// Of f64: choices of experts and positions that rounding could have made otherwise; they are
  /// replayed.
  i64 undecidable_tokens = 0;
  ComputedBy native;  ///< who computed the products of the native run, on accelerators
  i64 bytes_read = 0;
};

}  // namespace shardtool::engine
