#include "lib/model/weight_scales.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardtool::model {
namespace {

/// Block size in config.json for an axis of all matrices.
std::optional<i64> block_of_all(const mapping::ModelConfig& config, size_t axis) {
  return config.size(fmt::format("quantization_config.weight_block_size[{}]", axis));
}

/// Block size in config.json for an axis of the matrix.
std::optional<i64> configured_block(const mapping::ModelConfig& config, size_t axis) {
  const std::string weights = "quantization_config.config_groups.group_0.weights.";
  if (const auto size = block_of_all(config, axis)) return size;
  if (const auto size = config.size(fmt::format("{}block_structure[{}]", weights, axis)))
    return size;
  return axis == 1 ? config.size(weights + "group_size") : std::nullopt;
}

}  // namespace

std::vector<std::string> scale_names(std::string_view weight) {
  constexpr std::string_view kWeight = ".weight";
  const std::string name(weight);
  std::vector<std::string> names{name + "_scale_inv", name + "_scale"};
  if (name.ends_with(kWeight)) {
    names.push_back(name.substr(0, name.size() - kWeight.size()) + ".scale");
  }
  return names;
}

std::string zero_point_name(std::string_view weight) {
  return std::string(weight) + "_zero_point";
}

std::optional<i64> scale_block(const mapping::ModelConfig& config, i64 extent, i64 scales,
                               size_t axis) {
  const auto of_all = block_of_all(config, axis);
  if (of_all && ceil_div(extent, *of_all) != scales) return std::nullopt;
  if (scales == 1) return std::max<i64>(extent, 1);
  if (scales == extent) return 1;
  if (scales < 1) return std::nullopt;
  const i64 size = configured_block(config, axis).value_or(ceil_div(extent, scales));
  return ceil_div(extent, size) == scales ? std::optional(size) : std::nullopt;
}

}  // namespace shardtool::model
