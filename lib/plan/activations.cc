#include "lib/plan/activations.h"

#include <algorithm>

#include "lib/plan/byte_count.h"

namespace shardtool::plan {

i64 inference_activations(const LiveWidths& widths, int bits, i64 tokens, i64 sequences) {
  constexpr int kLogitBits = 32;
  const i64 live = 2 * widths.hidden + std::max(widths.attention, widths.mlp);
  i64 bytes = bytes_of(live, bits, tokens);
  add_bytes(bytes, bytes_of(widths.vocab, kLogitBits, sequences));
  return bytes;
}

double training_activations_per_layer(const TrainedLayer& layer) {
  const auto s = static_cast<double>(layer.sequence);
  const auto h = static_cast<double>(layer.hidden);
  const auto t = static_cast<double>(layer.tensor_parallel);
  const double tokens = s * static_cast<double>(layer.batch);
  const double stream = h / (layer.sequence_parallel ? t : 1);
  if (layer.recompute == Recompute::kFull) return 2 * tokens * stream;
  const double scores =
      layer.recompute == Recompute::kSelective ? 0 : 5 * static_cast<double>(layer.heads) * s / t;
  return tokens * (10 * stream + 2 * static_cast<double>(layer.inner) + scores);
}

}  // namespace shardtool::plan
