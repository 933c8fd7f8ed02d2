#include "shardtool/model/requirement.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

namespace shardtool::model {

mapping::ModelConfig part_of(const mapping::ModelConfig& config, std::string_view path) {
  const nlohmann::json* value = path.empty() ? nullptr : config.find(path);
  if (value == nullptr || !value->is_object()) return config;
  return {std::make_shared<const nlohmann::json>(*value), config.file()};
}

std::string said_at(std::string_view path, const mapping::ModelConfig& config) {
  const nlohmann::json* value = config.find(path);
  if (value == nullptr) return "null";
  return value->is_number() ? allowed_number(value->get<double>()) : value->dump();
}

const Requirements::value_type* first_unmet(const Requirements& requirements,
                                            const mapping::ModelConfig& config) {
  for (const auto& requirement : requirements) {
    const auto& [path, allowed] = requirement;
    if (std::find(allowed.begin(), allowed.end(), said_at(path, config)) == allowed.end()) {
      return &requirement;
    }
  }
  return nullptr;
}

}  // namespace shardtool::model
