#include "lib/model/causal.h"

namespace shardtool::model {

bool is_causal(const Model& model) {
  for (const Layer& layer : model.layers) {
    if (layer.is_vision_encoder) continue;
    for (const BoundOp& bound : layer.ops) {
      const auto* attention = std::get_if<Attention>(&bound.op->kind);
      if (attention != nullptr) return attention->causal;
    }
  }
  return true;
}

}  // namespace shardtool::model
