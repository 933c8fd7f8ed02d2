#include "shardtool/model/window.h"

#include <nlohmann/json.hpp>

namespace shardtool::model {
namespace {

using nlohmann::json;

bool is_on(const Window& window, const mapping::ModelConfig& config) {
  if (window.when.empty()) return true;
  const json* value = config.find(window.when);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

}  // namespace

std::optional<i64> window_of(const Attention& attention, const mapping::ModelConfig& config,
                             i64 layer) {
  if (!attention.window || !is_on(*attention.window, config)) return std::nullopt;
  const json* size = config.find(attention.window->config);
  const bool has_one = size != nullptr && size->is_number_integer() && size->get<i64>() > 0;
  if (!has_one) return std::nullopt;
  const auto& layers = attention.window->layers;
  if (layers && !contains(*layers, config, layer)) return std::nullopt;
  return size->get<i64>();
}

}  // namespace shardtool::model
