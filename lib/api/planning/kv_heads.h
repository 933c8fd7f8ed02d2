#pragma once

#include <string>
#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/mapping/attention_cache.h"
#include "lib/plan/kv_cache.h"

namespace shardtool::api {

/// What attention caches on every device of a mapping.
struct DeviceCaches {
  std::vector<std::vector<plan::CachedLayers>> layers;  ///< per rank; alike layers together
  std::vector<std::vector<plan::CachedLayers>> cross;   ///< the same of an encoder's positions
  int bits = 16;                                        ///< of one cached element
  mapping::AttentionCache model;  ///< empty without a config.json, but for the notes
};

/// Per layer: the KV heads whose keys the device computes, which is where replicated heads count on
/// each of their devices; a latent vector (MLA) wherever its projection is. `kv_dtype` is a name of
/// dtype_bits, or empty for the model's own. Without a config.json nothing is counted, and a note
/// says so. Throws kUsage for an unknown dtype.
DeviceCaches device_caches(const AppliedMapping& applied, const mapping::ModelConfig* config,
                           const std::string& kv_dtype);

/// Bits of "bfloat16", "bf16", "fp8", "int8", ...; throws kUsage with the names that are known.
int dtype_bits(const std::string& name);

}  // namespace shardtool::api
