#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/engine/diagnosis/outcome.h"
#include "lib/engine/run/computed_by.h"
#include "lib/plan/placement/placement.h"

namespace shardtool::engine {

/// First significant difference between two runs of a layer.
struct Fault {
  TierKind tier = TierKind::kField;
  std::string layer;                 ///< "start", "end", "decoder 3"
  std::string op;                    ///< "linear", "attention", ...
  std::string value;                 ///< output of the op, by its name in the graph
  std::vector<std::string> tensors;  ///< inputs of the op
  std::string tensor;                ///< faulty tensor, if one was found
  i64 rank = -1;                     ///< the first device that differs
  i64 token = -1;                    ///< row of the value
  i64 feature = -1;                  ///< global
  i64 mismatches = 0;                ///< elements of the layer's result, over all devices
  std::string diagnosis;             ///< in words; empty until the bytes are compared
  size_t layer_index = 0;
  size_t step = 0;
};

/// Result of one number system.
struct TierVerdict {
  TierKind kind = TierKind::kField;
  Outcome outcome = Outcome::kPass;
  i64 checked = 0;  ///< compared numbers
  i64 mismatches = 0;
  double worst = 0;  ///< floats: largest difference over the RMS of the value
  /// For a native run: largest |whole - exact| / |exact| of a layer's result.
  double rounding = 0;
  std::vector<Fault> faults;  ///< at most one per layer
  /// Values inside layers that differ although the layer's result is equal: the shards compute the
  /// same function in another order.
  i64 reordered = 0;
  std::vector<size_t> reordered_layers;
};

/// A weight with NaN or infinite numbers.
struct OddWeight {
  std::string tensor;
  bool is_shard = false;
  i64 rank = -1;
  i64 nan = 0;
  i64 infinite = 0;

  bool operator==(const OddWeight&) const = default;
};

struct CollectiveRow {
  TierKind tier = TierKind::kField;
  std::string axis;
  plan::Move move = plan::Move::kAllReduce;
  i64 predicted_count = 0, counted = 0;
  i64 predicted_elements = 0, counted_elements = 0;
  i64 element_bytes = 0;

  bool agrees() const {
    return predicted_count == counted && predicted_elements == counted_elements;
  }
};

/// Comparison of stored bytes with the whole model's at the same positions, ignoring padding.
struct ComparedBytes {
  struct Part {
    std::string tensor;
    i64 rank = 0;
  };
  i64 parts = 0;  ///< (tensor, device) parts that have the same dtype and shape on both sides
  i64 differing = 0;
  std::vector<Part> different;  ///< by tensor and rank
  std::set<size_t> tensors;     ///< indices of the tensors with a compared part
};

/// Comparison of stored bytes with a manifest's hashes.
struct RecordedBytes {
  static constexpr i64 kWhole = -1;  ///< instead of a rank: all shards together
  struct DifferentPart {
    std::string tensor;
    i64 rank = kWhole;
    std::string found, expected;  ///< "XXH3-128 ..." for a part, "CRC-64 ..." for a whole tensor
  };
  std::vector<DifferentPart> different;
  /// Tensors with a part that was not read from front to back, and so not compared.
  std::set<size_t> unread;
};

struct Verdict {
  std::vector<TierVerdict> tiers;
  std::vector<CollectiveRow> collectives;  ///< of all tiers
  std::vector<OddWeight> odd_weights;
  /// First weight whose input is gathered because it is cut in another way than its columns; empty
  /// if there is none.
  std::string realigned;
  ComparedBytes bytes;
  RecordedBytes recorded;
  /// Digest of the whole model's results in the field, which the shards have if they pass: the same
  /// for all layouts of a model, seeds and number maps being equal.
  std::uint64_t digest = 0;
  std::set<size_t> tested;  ///< tensors of the shards that a result depends on
  std::string ran;          ///< layers of the share: "decoder 3 to decoder 9"; may be empty
  std::set<size_t> judged;  ///< tensors of the shards whose bytes this validation judges
  /// For f64: choices of experts and positions that rounding could have changed; they are replayed.
  i64 undecidable_tokens = 0;
  ComputedBy native;  ///< library and kernel products of the native run, on accelerators
  i64 bytes_read = 0;
};

}  // namespace shardtool::engine
