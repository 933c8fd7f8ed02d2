#pragma once

#include <span>

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Layers with the same cache on one device.
struct CachedLayers {
  i64 elements = 0;  ///< per token and layer: 2 * head_dim * local KV heads, or the latent vector
  i64 window = 0;    ///< number of tokens kept; 0: all
  i64 layers = 1;
  i64 stride = 1;  ///< tokens per entry of `elements`
};

/// Storage format of a cache.
struct CacheStore {
  int bits = 16;         ///< bits per element
  i64 block_tokens = 1;  ///< tokens per allocation block
};

/// Bytes for one more token while no window is full, rounded up if an entry covers several tokens:
/// sum of elements * bits / 8 * layers / stride. Throws kLimit on overflow, like all functions
/// below.
i64 kv_bytes_per_token(std::span<const CachedLayers> layers, CacheStore store);

/// Bytes of one sequence of `tokens`: every layer keeps min(tokens, window) / stride complete
/// entries; tokens in whole blocks.
i64 kv_bytes(std::span<const CachedLayers> layers, CacheStore store, i64 tokens);

/// Largest number of tokens, in whole blocks, with a cache of at most `bytes`, in sequences of
/// `context` tokens and one shorter sequence; without a context (0) no layer drops any. 0 if no
/// values are cached or not even a block fits.
i64 kv_capacity_tokens(std::span<const CachedLayers> layers, CacheStore store, i64 bytes,
                       i64 context = 0);

}  // namespace shardtool::plan
