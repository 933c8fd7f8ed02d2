#include "lib/api/planning/search/survival.h"

#include <algorithm>
#include <numeric>

#include "lib/api/planning/search/layout_space.h"
#include "lib/api/planning/search/replica_prices.h"
#include "lib/base/error.h"

namespace shardtool::api {
namespace {

/// Returns the number of ways in which the replicas of two layouts differ.
int differences(const ServingLayout& a, const ServingLayout& b) {
  return (a.pp != b.pp) + (a.ep != b.ep) + (a.tp != b.tp) +
         (a.expert_parallel != b.expert_parallel);
}

}  // namespace

Survival::Survival(const SearchOptions& options, const ServedModel& model)
    : options_(options), model_(model) {
  const i64 left = std::ranges::max(options.devices) - options.survive;
  std::vector<i64> counts(static_cast<size_t>(std::max<i64>(0, left)));
  std::iota(counts.begin(), counts.end(), 1);
  for (const ServingLayout& layout : layout_space(counts, model.limits())) {
    if (layout.dp == 1) replicas_.push_back(layout);
  }
  std::ranges::stable_sort(replicas_, std::ranges::greater(), &ServingLayout::replica);
}

std::optional<ServingLayout> Survival::fallback_of(const ServingRow& row) {
  const i64 left = row.layout.devices() - options_.survive;
  constexpr int kMostDifferences = 4;
  for (int most = 0; most <= kMostDifferences; ++most) {
    for (ServingLayout layout : replicas_) {
      if (layout.replica() > left || differences(layout, row.layout) != most) continue;
      layout.dp = left / layout.replica();
      if (!options_.request_rate) layout.dp = std::min(layout.dp, row.concurrency);
      if (holds(layout, row)) return layout;
    }
  }
  return std::nullopt;
}

bool Survival::holds(const ServingLayout& layout, const ServingRow& row) {
  const Room& room = room_of(layout, row);
  if (room.places == 0) return false;
  if (options_.request_rate)
    return static_cast<double>(layout.dp) * room.requests_per_s >= *options_.request_rate;
  return room.places >= ceil_div(row.concurrency, layout.dp);
}

const Survival::Room& Survival::room_of(const ServingLayout& replica, const ServingRow& row) {
  const Key key{replica.pp,   replica.ep,           replica.tp, replica.expert_parallel,
                row.kv_dtype, row.sequence_parallel};
  const auto [found, is_new] = rooms_.try_emplace(key);
  if (is_new) found->second = found_room(replica, row);
  return found->second;
}

Survival::Room Survival::found_room(const ServingLayout& replica, const ServingRow& row) const {
  if (!model_.too_small(replica).empty()) return {};
  try {
    const auto placed = model_.place(replica);
    Room room{model_.memory(*placed, row.kv_dtype).places};
    if (room.places == 0 || !options_.request_rate) return room;
    ReplicaPrices prices(options_, model_, *placed, replica, row.kv_dtype);
    room.requests_per_s = prices.most_requests_per_s(room.places, row.sequence_parallel);
    return room;
  } catch (const Error& error) {
    if (constraint_of(error) == nullptr) throw;
    return {};
  }
}

}  // namespace shardtool::api
