#include "lib/plan/kv_cache.h"

#include <algorithm>

#include "lib/plan/byte_count.h"

namespace shardtool::plan {

i64 kv_bytes_per_token(std::span<const CachedLayers> layers, CacheStore store) {
  i64 bytes = 0;
  for (const CachedLayers& some : layers) {
    add_bytes(bytes, ceil_div(bytes_of(some.elements, store.bits, some.layers), some.stride));
  }
  return bytes;
}

i64 kv_bytes(std::span<const CachedLayers> layers, CacheStore store, i64 tokens) {
  i64 bytes = 0;
  for (const CachedLayers& some : layers) {
    const i64 kept = some.window > 0 ? std::min(tokens, some.window) : tokens;
    const i64 per_entry = bytes_of(some.elements, store.bits, some.layers);
    add_bytes(bytes, times(round_up(kept, store.block_tokens) / some.stride, per_entry));
  }
  return bytes;
}

i64 kv_capacity_tokens(std::span<const CachedLayers> layers, CacheStore store, i64 bytes,
                       i64 context) {
  const i64 per_token = kv_bytes_per_token(layers, store);
  if (per_token == 0 || bytes <= 0) return 0;
  if (context == 0) return bytes / times(per_token, store.block_tokens) * store.block_tokens;
  const i64 sequence = std::max<i64>(kv_bytes(layers, store, context), 1);
  const i64 blocks = ceil_div(context, store.block_tokens);
  i64 fits = 0;  // blocks of the shorter sequence
  for (i64 beyond = blocks; beyond - fits > 1;) {
    const i64 middle = fits + (beyond - fits) / 2;
    const bool has_room = kv_bytes(layers, store, middle * store.block_tokens) <= bytes % sequence;
    (has_room ? fits : beyond) = middle;
  }
  return times(times(bytes / sequence, blocks) + fits, store.block_tokens);
}

}  // namespace shardtool::plan
