#include "shardtool/model/window.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace shardtool::model {

std::optional<i64> window_of(const Attention& attention, const mapping::ModelConfig& config,
                             i64 layer) {
  if (!attention.window) return std::nullopt;
  const Window& window = *attention.window;
  if (window.layers == Window::Layers::kEven && layer % 2 != 0) return std::nullopt;
  if (window.layers == Window::Layers::kListed) {
    const auto type = config.text("layer_types[" + std::to_string(layer) + "]");
    if (type != "sliding_attention") return std::nullopt;
  }
  const nlohmann::json* size = config.find(window.config);
  const bool has_one = size != nullptr && size->is_number_integer() && size->get<i64>() > 0;
  return has_one ? std::optional(size->get<i64>()) : std::nullopt;
}

}  // namespace shardtool::model
