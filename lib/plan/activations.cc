#include "lib/plan/activations.h"

#include <algorithm>

#include "lib/plan/byte_count.h"

namespace shardtool::plan {
namespace {

double tokens_of(const TrainedLayer& layer) {
  return static_cast<double>(layer.sequence) * static_cast<double>(layer.batch);
}

/// Features of the residual stream that a device keeps of a token.
double stream_of(const TrainedLayer& layer) {
  const auto t = static_cast<double>(layer.sequence_parallel ? layer.tensor_parallel : 1);
  return static_cast<double>(layer.hidden) / t;
}

}  // namespace

i64 inference_activations(const LiveWidths& widths, int bits, i64 tokens, i64 sequences) {
  constexpr int kLogitBits = 32;
  const i64 live = 2 * widths.hidden + std::max(widths.attention, widths.mlp);
  i64 bytes = bytes_of(live, bits, tokens);
  add_bytes(bytes, bytes_of(widths.vocab, kLogitBits, sequences));
  return bytes;
}

double training_activations_per_layer(const TrainedLayer& layer) {
  const double tokens = tokens_of(layer);
  if (layer.recompute == Recompute::kFull) return 2 * tokens * stream_of(layer);
  const double scores =
      layer.recompute == Recompute::kSelective
          ? 0
          : 5 * static_cast<double>(layer.heads) * static_cast<double>(layer.sequence);
  return tokens * (10 * stream_of(layer) + 2 * static_cast<double>(layer.inner) + scores);
}

double recomputed_activations(TrainedLayer layer) {
  if (layer.recompute != Recompute::kFull) return 0;
  const double kept = training_activations_per_layer(layer);
  layer.recompute = Recompute::kNone;
  return training_activations_per_layer(layer) - kept;
}

double training_head_activations(const TrainedLayer& head) {
  return tokens_of(head) * (4 * stream_of(head) + 4 * static_cast<double>(head.inner));
}

}  // namespace shardtool::plan
