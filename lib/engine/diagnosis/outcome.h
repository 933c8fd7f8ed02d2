#pragma once

#include <string_view>

namespace shardtool::engine {

/// The result of a comparison, or of all of them, the worst last.
enum class Outcome {
  kNotRun,
  kPass,
  kUndecided,
  kDiffers,  ///< of an order-matched run: other bits, which are no failure
  kFail,
};

/// "not run", "pass", "undecided", "differs" or "fail".
std::string_view to_text(Outcome outcome);

/// The comparisons of a validation.
enum class TierKind {
  kManifest,     ///< of headers with the shards' manifest and the reference
  kHeaders,      ///< the same of shards without a manifest
  kHashes,       ///< of bytes with the manifest's hashes
  kBytes,        ///< of bytes that no result depends on, with the reference
  kField,        ///< of the function, in exact arithmetic
  kF64,          ///< of the function, in f64
  kOrderedF32,   ///< of bits, with the whole model summed as the shards sum
  kOrderedBf16,  ///< the same in bf16
  kNative,       ///< of rounding, in the weights' type
  kGolden,       ///< of the whole model with another implementation's results
};

/// "manifest", "field", "ordered f32", ...
std::string_view to_text(TierKind kind);
/// "V0" to "V5".
std::string_view number_of(TierKind kind);

inline bool is_ordered(TierKind kind) {
  return kind == TierKind::kOrderedF32 || kind == TierKind::kOrderedBf16;
}

}  // namespace shardtool::engine
