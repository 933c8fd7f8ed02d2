#include "cli/print/html/device_groups.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

namespace shardtool::cli {

std::string rank_list(const std::vector<i64>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[i]);
    if (end - i > 1) text += fmt::format("-{}", ranks[end - 1]);
    i = end;
  }
  return text;
}

std::vector<DeviceGroup> equal_devices(const JsonView& devices) {
  std::map<std::string, size_t> numbers;
  std::vector<DeviceGroup> groups;
  for (size_t d = 0; d < devices.size(); ++d) {
    auto memory = nlohmann::ordered_json::parse(devices[d].json());
    memory.erase("rank");
    memory.erase("replicated_bytes");
    const auto [found, is_new] = numbers.try_emplace(memory.dump(), groups.size());
    if (is_new) groups.push_back({d, {}, ""});
    groups[found->second].ranks.push_back(devices[d]["rank"].count());
  }
  for (DeviceGroup& group : groups)
    group.name =
        fmt::format("{} {}", group.ranks.size() == 1 ? "rank" : "ranks", rank_list(group.ranks));
  return groups;
}

}  // namespace shardtool::cli
