#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "lib/api/plan_search.h"
#include "lib/api/planning/search/served_model.h"

namespace shardtool::api {

/// Layouts for the devices that are left when SearchOptions::survive of them are lost.
class Survival {
 public:
  /// The arguments must outlive it.
  Survival(const SearchOptions& options, const ServedModel& model);

  /// Returns the layout that holds a row's load on the devices left, with its source and cache: of
  /// those in the space that do, one that differs from the row's in as few of pp, ep, tp and whole
  /// experts as possible, and of these the first one with the largest replicas. Its clients have
  /// places in the caches, or it answers the request rate. Nullopt if there is none.
  std::optional<ServingLayout> fallback_of(const ServingRow& row);

 private:
  using Key = std::tuple<i64, i64, i64, bool, std::string, bool>;

  /// Capacity of one replica; zeros if its layout is not possible.
  struct Room {
    i64 places = 0;
    double requests_per_s = 0;  ///< greatest rate; with a request rate alone
  };

  const Room& room_of(const ServingLayout& replica, const ServingRow& row);
  Room found_room(const ServingLayout& replica, const ServingRow& row) const;
  bool holds(const ServingLayout& layout, const ServingRow& row);

  const SearchOptions& options_;
  const ServedModel& model_;
  std::vector<ServingLayout> replicas_;  ///< of the space, descending in devices
  std::map<Key, Room> rooms_;
};

}  // namespace shardtool::api
