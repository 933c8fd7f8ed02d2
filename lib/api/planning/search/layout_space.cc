#include "lib/api/planning/search/layout_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::api {
namespace {

std::vector<i64> divisors(i64 n) {
  std::vector<i64> all;
  for (i64 d = 1; d <= n; ++d) {
    if (n % d == 0) all.push_back(d);
  }
  return all;
}

bool keeps(const PinnedSizes& pinned, const ServingLayout& layout) {
  const auto is = [](const std::optional<i64>& wanted, i64 size) {
    return !wanted || *wanted == size;
  };
  return is(pinned.pp, layout.pp) && is(pinned.ep, layout.ep) && is(pinned.tp, layout.tp) &&
         (!pinned.expert_parallel || layout.expert_parallel);
}

/// Appends the layouts of one replica count and pipeline.
void add_groups(ServingLayout layout, i64 group, i64 experts, std::vector<ServingLayout>& all) {
  for (const i64 ep : divisors(group)) {
    layout.ep = ep;
    layout.tp = group / ep;
    layout.expert_parallel = false;
    if (ep == 1 || ep <= experts) all.push_back(layout);
    layout.expert_parallel = true;
    if (layout.tp > 1 && group <= experts) all.push_back(layout);
  }
}

/// "pp=2 x tp=3", the sizes that a search keeps.
std::string pinned_text(const PinnedSizes& pinned) {
  std::string text;
  const std::pair<const char*, std::optional<i64>> sizes[] = {
      {"pp", pinned.pp}, {"ep", pinned.ep}, {"tp", pinned.tp}};
  for (const auto& [axis, size] : sizes) {
    if (size) text += fmt::format("{}{}={}", text.empty() ? "" : " x ", axis, *size);
  }
  return text;
}

constexpr i64 kEndless = std::numeric_limits<i64>::max();

std::string too_few_layers(const SpaceLimits& limits, i64 pp) {
  return fmt::format("the model has {}, and every stage of pp={} needs one",
                     plural(limits.layers, "layer"), pp);
}

/// Says which numbers of devices, layers or experts exclude every layout.
std::string exclusion(const std::vector<i64>& devices, const SpaceLimits& limits) {
  const PinnedSizes& pinned = limits.pinned;
  if (layout_space(devices, {kEndless, kEndless, pinned}).empty()) {
    const auto is_multiple = [&](i64 n) {
      for (const auto& size : {pinned.pp, pinned.ep, pinned.tp}) {
        if (n % size.value_or(1) != 0) return false;
        n /= size.value_or(1);
      }
      return true;
    };
    if (std::ranges::none_of(devices, is_multiple))
      return fmt::format("no number of --devices is a multiple of {}", pinned_text(pinned));
    return "whole experts need at least two devices along tp";
  }
  if (layout_space(devices, {limits.layers, kEndless, pinned}).empty())
    return too_few_layers(limits, pinned.pp.value_or(1));
  if (limits.experts == 0)
    return "the model has no experts, which --ep and --expert-parallel place";
  return fmt::format("the model has {}, fewer than the devices that would share them",
                     plural(limits.experts, "expert"));
}

}  // namespace

std::string to_string(const ServingLayout& layout) {
  std::string text;
  const std::pair<const char*, i64> outer[] = {
      {"dp", layout.dp}, {"pp", layout.pp}, {"ep", layout.ep}};
  for (const auto& [axis, size] : outer) {
    if (size > 1) text += fmt::format("{}={} ", axis, size);
  }
  return text + fmt::format("tp={}{}", layout.tp, layout.expert_parallel ? " expert-parallel" : "");
}

std::vector<ServingLayout> layout_space(const std::vector<i64>& devices,
                                        const SpaceLimits& limits) {
  std::vector<i64> counts = devices;
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<ServingLayout> all;
  for (const i64 n : counts) {
    for (const i64 dp : divisors(n)) {
      for (const i64 pp : divisors(n / dp)) {
        if (pp > limits.layers) continue;
        add_groups({dp, pp}, n / dp / pp, limits.experts, all);
      }
    }
  }
  std::erase_if(all, [&](const ServingLayout& layout) { return !keeps(limits.pinned, layout); });
  return all;
}

std::vector<ServingLayout> layouts_of_search(const std::vector<i64>& devices,
                                             const SpaceLimits& limits) {
  std::vector<ServingLayout> all = layout_space(devices, limits);
  if (!all.empty()) return all;
  throw Error(ErrorCode::kUsage, exclusion(devices, limits))
      .help("give other --devices, or leave out --pp, --ep, --tp or --expert-parallel");
}

std::vector<TooDeepLayout> too_deep_layouts(const std::vector<i64>& devices,
                                            const SpaceLimits& limits) {
  std::vector<TooDeepLayout> all;
  for (const ServingLayout& layout :
       layout_space(devices, {kEndless, limits.experts, limits.pinned})) {
    if (layout.pp > limits.layers) all.push_back({layout, too_few_layers(limits, layout.pp)});
  }
  return all;
}

std::vector<std::vector<ServingLayout>> replicas_of(const std::vector<ServingLayout>& layouts) {
  std::map<std::tuple<i64, i64, i64, bool>, std::vector<ServingLayout>> groups;
  for (const ServingLayout& layout : layouts)
    groups[{layout.pp, layout.ep, layout.tp, layout.expert_parallel}].push_back(layout);
  std::vector<std::vector<ServingLayout>> replicas;
  for (auto& [key, group] : groups) replicas.push_back(std::move(group));
  return replicas;
}

i64 search_threads(size_t replicas) {
  constexpr i64 kMost = 16;
  const i64 processors = std::max<i64>(1, std::thread::hardware_concurrency());
  return std::min({kMost, processors, static_cast<i64>(replicas)});
}

}  // namespace shardtool::api
