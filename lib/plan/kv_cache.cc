#include "shardtool/plan/kv_cache.h"

#include <algorithm>

#include "shardtool/plan/byte_count.h"

namespace shardtool::plan {

i64 kv_bytes_per_token(std::span<const CachedLayers> layers, CacheStore store) {
  i64 bytes = 0;
  for (const CachedLayers& some : layers) {
    add_bytes(bytes, bytes_of(some.elements, store.bits, some.layers));
  }
  return bytes;
}

i64 kv_bytes(std::span<const CachedLayers> layers, CacheStore store, i64 tokens) {
  i64 bytes = 0;
  for (const CachedLayers& some : layers) {
    const i64 kept = some.window > 0 ? std::min(tokens, some.window) : tokens;
    const i64 per_token = bytes_of(some.elements, store.bits, some.layers);
    add_bytes(bytes, times(round_up(kept, store.block_tokens), per_token));
  }
  return bytes;
}

i64 kv_capacity_tokens(std::span<const CachedLayers> layers, CacheStore store, i64 bytes) {
  const i64 per_token = kv_bytes_per_token(layers, store);
  if (per_token == 0 || bytes <= 0) return 0;
  return bytes / times(per_token, store.block_tokens) * store.block_tokens;
}

}  // namespace shardtool::plan
