#include "cli/print/html/device_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace shardtool::cli {

namespace {

/// One past the last of the ranks from `begin` on that have equal distances.
size_t end_of_steps(const std::vector<i64>& ranks, size_t begin) {
  size_t end = std::min(begin + 2, ranks.size());
  while (end < ranks.size() && ranks[end] - ranks[end - 1] == ranks[begin + 1] - ranks[begin])
    ++end;
  return end;
}

}  // namespace

std::string rank_list(const std::vector<i64>& ranks) {
  constexpr size_t kShortest = 4;  // of the steps that are not listed one by one
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    const size_t end = end_of_steps(ranks, i);
    const bool is_run = end - i > 1 && ranks[i + 1] == ranks[i] + 1;
    const bool is_listed = !is_run && end - i < kShortest;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[i]);
    if (is_run) text += fmt::format("-{}", ranks[end - 1]);
    if (!is_run && !is_listed) text += fmt::format(", {}, .. {}", ranks[i + 1], ranks[end - 1]);
    i = is_listed ? i + 1 : end;
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
