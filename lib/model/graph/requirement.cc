#include "lib/model/graph/requirement.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

namespace shardtool::model {

mapping::ModelConfig part_of(const mapping::ModelConfig& config, std::string_view path) {
  if (path.empty()) return config;
  const nlohmann::json& whole = *config.find("");
  const nlohmann::json* value = config.find(path);
  nlohmann::json part = value != nullptr && value->is_object() ? *value : whole;
  part["whole"] = whole;
  return config.with_value(std::make_shared<const nlohmann::json>(std::move(part)));
}

namespace {

bool allows(const std::vector<std::string>& allowed, std::string_view path,
            const mapping::ModelConfig& config) {
  const auto has = [&](std::string_view said) {
    return std::find(allowed.begin(), allowed.end(), said) != allowed.end();
  };
  return has(said_at(path, config)) || (config.find(path) == nullptr && has("\"absent\""));
}

}  // namespace

const Requirements::value_type* first_unmet(const Requirements& requirements,
                                            const mapping::ModelConfig& config) {
  for (const auto& requirement : requirements) {
    if (!allows(requirement.second, requirement.first, config)) return &requirement;
  }
  return nullptr;
}

}  // namespace shardtool::model
