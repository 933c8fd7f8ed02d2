#include "lib/index/axis_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lib/base/error.h"

namespace shardtool::index {
namespace {

std::vector<int> all_numbers(std::span<const AxisMap> maps) {
  std::vector<int> numbers(maps.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::vector<i64> cut_points(std::span<const AxisMap> maps, std::span<const int> numbers) {
  std::vector<i64> cuts;
  for (const int number : numbers) {
    for (const Piece& p : maps[static_cast<size_t>(number)].pieces()) {
      cuts.push_back(p.global);
      cuts.push_back(p.global_end());
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

/// Index of the cut at which each piece begins, in map order.
std::vector<size_t> first_cuts(std::span<const AxisMap> maps, std::span<const int> numbers,
                               const std::vector<i64>& cuts) {
  std::vector<size_t> first;
  for (const int number : numbers) {
    for (const Piece& p : maps[static_cast<size_t>(number)].pieces()) {
      const auto cut = std::lower_bound(cuts.begin(), cuts.end(), p.global);
      first.push_back(static_cast<size_t>(cut - cuts.begin()));
    }
  }
  return first;
}

}  // namespace

AxisIndex::AxisIndex(std::span<const AxisMap> maps) : AxisIndex(maps, all_numbers(maps)) {}

AxisIndex::AxisIndex(std::span<const AxisMap> maps, std::span<const int> numbers) {
  const std::vector<i64> cuts = cut_points(maps, numbers);
  if (cuts.empty()) return;
  const std::vector<size_t> first_cut = first_cuts(maps, numbers, cuts);
  // Counting sort of the claims by segment, so that each segment's claims are contiguous and in map
  // order.
  std::vector<size_t> first_claim(cuts.size() + 1, 0);
  const auto for_each_claim = [&](const auto& visit) {
    size_t piece = 0;
    for (const int map : numbers) {
      for (const Piece& p : maps[static_cast<size_t>(map)].pieces()) {
        for (size_t s = first_cut[piece++]; cuts[s] < p.global_end(); ++s) {
          visit(s, Claim{map, p.local + cuts[s] - p.global});
        }
      }
    }
  };
  for_each_claim([&](size_t s, const Claim&) { ++first_claim[s + 1]; });
  for (size_t s = 1; s < first_claim.size(); ++s) first_claim[s] += first_claim[s - 1];
  if (first_claim.back() > kMostClaims) {
    throw Error(ErrorCode::kLimit,
                fmt::format("{} shards of a tensor overlap in too many ways", numbers.size()));
  }
  claims_.resize(first_claim.back());
  std::vector<size_t> next = first_claim;
  for_each_claim([&](size_t s, const Claim& claim) { claims_[next[s]++] = claim; });
  for (size_t s = 0; s + 1 < cuts.size(); ++s) {
    const size_t count = first_claim[s + 1] - first_claim[s];
    if (count == 0) continue;
    segments_.push_back({cuts[s], cuts[s + 1], std::span(claims_).subspan(first_claim[s], count)});
  }
}

}  // namespace shardtool::index
