#pragma once

#include <span>

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Layers that cache alike on one device.
struct CachedLayers {
  i64 elements = 0;  ///< per token and layer: 2 * head_dim * KV heads here, or the latent vector
  i64 window = 0;    ///< tokens that are kept; 0: all
  i64 layers = 1;
  i64 stride = 1;  ///< tokens that one entry of `elements` stands for
};

/// How a cache is stored.
struct CacheStore {
  int bits = 16;         ///< of one element
  i64 block_tokens = 1;  ///< tokens are allocated in blocks of this many
};

/// Bytes that one more token takes while no window is full, rounded up where an entry stands for
/// several: sum of elements * bits / 8 * layers / stride. Throws kLimit on overflow, like all
/// below.
i64 kv_bytes_per_token(std::span<const CachedLayers> layers, CacheStore store);

/// Bytes of one sequence of `tokens`: every layer keeps min(tokens, window) / stride entries, those
/// of several tokens once they are complete; tokens in whole blocks.
i64 kv_bytes(std::span<const CachedLayers> layers, CacheStore store, i64 tokens);

/// The most tokens, in whole blocks, whose cache fits into `bytes`, in sequences of `context`
/// tokens and one that is shorter; without a context (0) no layer drops any. 0 when nothing is
/// cached or not even a block fits.
i64 kv_capacity_tokens(std::span<const CachedLayers> layers, CacheStore store, i64 bytes,
                       i64 context = 0);

}  // namespace shardtool::plan
