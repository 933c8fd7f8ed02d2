#include "lib/ops/attention/window.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace shardtool::ops {
namespace {

using nlohmann::json;

bool is_on(const Window& window, const mapping::ModelConfig& config) {
  if (window.when.empty()) return true;
  const json* value = config.find(window.when);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

/// Returns the number at a path, or `otherwise` if the path is absent; 0 if the value is not a
/// number.
i64 number_at(const std::string& path, const mapping::ModelConfig& config, i64 otherwise = 0) {
  const json* value = path.empty() ? nullptr : config.find(path);
  if (value == nullptr) return otherwise;
  return value->is_number_integer() ? std::max<i64>(0, value->get<i64>()) : 0;
}

i64 size_of(const Window& window, const mapping::ModelConfig& config) {
  const i64 before =
      std::max(number_at(window.before, config), number_at(window.around, config) / 2);
  return before > 0 ? before + 1 : number_at(window.config, config, window.otherwise);
}

}  // namespace

std::optional<i64> window_of(const Attention& attention, const mapping::ModelConfig& config,
                             i64 layer) {
  if (!attention.window || !is_on(*attention.window, config)) return std::nullopt;
  const i64 size = size_of(*attention.window, config);
  if (size == 0) return std::nullopt;
  const auto& layers = attention.window->layers;
  if (layers && !contains(*layers, config, layer)) return std::nullopt;
  return size;
}

}  // namespace shardtool::ops
