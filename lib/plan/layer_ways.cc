#include "lib/plan/layer_ways.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "lib/base/error.h"

namespace shardtool::plan {
namespace {

/// A way that no other one of its layer beats both in bytes and in time.
struct FrontWay {
  LayerWay way;
  size_t index = 0;  ///< among all ways of the layer
};
using Front = std::vector<FrontWay>;  ///< ascending in bytes, descending in time

Front front_of(const std::vector<LayerWay>& ways) {
  Front all;
  for (size_t i = 0; i < ways.size(); ++i) all.push_back({ways[i], i});
  std::ranges::sort(all, {}, [](const FrontWay& one) {
    return std::tuple(one.way.bytes, one.way.us, one.index);
  });
  Front front;
  for (const FrontWay& one : all) {
    if (front.empty() || one.way.us < front.back().way.us) front.push_back(one);
  }
  return front;
}

/// A step along the lower convex hull of a layer's ways.
struct Exchange {
  size_t layer = 0;
  size_t to = 0;  ///< of the front
  i64 bytes = 0;  ///< more
  double us = 0;  ///< less

  double gain() const { return us / static_cast<double>(bytes); }
};

/// Appends the exchanges of one layer, each with a smaller gain than the one before it.
void add_exchanges(const Front& front, size_t layer, std::vector<Exchange>& all) {
  for (size_t at = 0; at + 1 < front.size();) {
    Exchange best;
    for (size_t to = at + 1; to < front.size(); ++to) {
      const Exchange one{layer, to, front[to].way.bytes - front[at].way.bytes,
                         front[at].way.us - front[to].way.us};
      if (best.bytes == 0 || one.gain() >= best.gain()) best = one;
    }
    all.push_back(best);
    at = best.to;
  }
}

/// Sums of some first layers.
struct Partial {
  i64 bytes = 0;
  double us = 0;
  size_t before = 0;  ///< among those of one layer less
  size_t way = 0;     ///< of the front of the last layer
};

class WaysProgram {
 public:
  WaysProgram(std::span<const std::vector<LayerWay>> layers, i64 budget) : budget_(budget) {
    for (const auto& ways : layers) fronts_.push_back(front_of(ways));
    least_.assign(fronts_.size() + 1, 0);
    for (size_t i = fronts_.size(); i-- > 0;)
      least_[i] = least_[i + 1] + fronts_[i].front().way.bytes;
  }

  std::optional<ChosenWays> solve() && {
    if (least_.front() > budget_) return std::nullopt;
    set_bounds();
    std::vector<std::vector<Partial>> sums{{{}}};
    size_t kept = 0;
    for (size_t i = 0; i < fronts_.size(); ++i) {
      sums.push_back(after(i, sums.back()));
      kept += sums.back().size();
      if (kept > kMostPartialSums)
        throw Error(ErrorCode::kLimit, "the ways to run the layers have too many different sizes");
    }
    return chosen(sums);
  }

 private:
  /// Finds a good choice, and the price of a byte at which it is nearly the best.
  void set_bounds() {
    std::vector<Exchange> exchanges;
    double us = 0;
    for (size_t i = 0; i < fronts_.size(); ++i) {
      us += fronts_[i].front().way.us;
      add_exchanges(fronts_[i], i, exchanges);
    }
    std::ranges::stable_sort(exchanges, std::greater(), &Exchange::gain);
    i64 left = budget_ - least_.front();
    std::vector<bool> is_stuck(fronts_.size(), false);
    double price = 0;
    for (const Exchange& one : exchanges) {
      if (is_stuck[one.layer]) continue;
      if (one.bytes <= left) {
        left -= one.bytes;
        us -= one.us;
      } else {
        is_stuck[one.layer] = true;
        if (price == 0) price = one.gain();
      }
    }
    best_us_ = us;
    price_ = price;
    priced_.assign(fronts_.size() + 1, 0);
    for (size_t i = fronts_.size(); i-- > 0;) {
      double least = std::numeric_limits<double>::infinity();
      for (const FrontWay& one : fronts_[i]) least = std::min(least, priced(one.way));
      priced_[i] = priced_[i + 1] + least;
    }
  }

  double priced(const LayerWay& way) const {
    return way.us + price_ * static_cast<double>(way.bytes);
  }

  /// True if no choice that begins with these sums is better than the known one.
  bool is_hopeless(const Partial& sum, size_t layers) const {
    constexpr double kRounding = 1e-9;
    if (sum.bytes + least_[layers] > budget_) return true;
    const double bound = sum.us + priced_[layers] + price_ * static_cast<double>(sum.bytes) -
                         price_ * static_cast<double>(budget_);
    return bound > best_us_ * (1 + kRounding);
  }

  std::vector<Partial> after(size_t layer, const std::vector<Partial>& before) const {
    std::vector<Partial> sums;
    for (size_t b = 0; b < before.size(); ++b) {
      for (size_t w = 0; w < fronts_[layer].size(); ++w) {
        const LayerWay& way = fronts_[layer][w].way;
        const Partial sum{before[b].bytes + way.bytes, before[b].us + way.us, b, w};
        if (!is_hopeless(sum, layer + 1)) sums.push_back(sum);
      }
    }
    std::ranges::sort(sums, {}, [](const Partial& one) { return std::pair(one.bytes, one.us); });
    double least = std::numeric_limits<double>::infinity();
    std::erase_if(sums, [&](const Partial& one) {
      if (one.us >= least) return true;
      least = one.us;
      return false;
    });
    return sums;
  }

  ChosenWays chosen(const std::vector<std::vector<Partial>>& sums) const {
    const auto& last = sums.back();
    size_t at =
        static_cast<size_t>(std::ranges::min_element(last, {}, &Partial::us) - last.begin());
    ChosenWays all{std::vector<size_t>(fronts_.size()), last[at].bytes, last[at].us};
    for (size_t i = fronts_.size(); i-- > 0;) {
      const Partial& sum = sums[i + 1][at];
      all.ways[i] = fronts_[i][sum.way].index;
      at = sum.before;
    }
    return all;
  }

  i64 budget_;
  std::vector<Front> fronts_;
  std::vector<i64> least_;      ///< bytes of the smallest ways from a layer on
  double best_us_ = 0;          ///< of a known choice
  double price_ = 0;            ///< of a byte, in microseconds
  std::vector<double> priced_;  ///< least time plus price from a layer on
};

i64 most_bytes(std::span<const std::vector<std::vector<LayerWay>>> moments,
               const std::vector<size_t>& ways) {
  i64 most = 0;
  for (const auto& layers : moments) {
    i64 bytes = 0;
    for (size_t i = 0; i < ways.size(); ++i) bytes += layers[i][ways[i]].bytes;
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

std::optional<ChosenWays> fitting_ways(std::span<const std::vector<std::vector<LayerWay>>> moments,
                                       i64 budget) {
  i64 lowered = budget;
  while (auto chosen = fastest_ways(moments.front(), lowered)) {
    const i64 of_first = chosen->bytes;
    chosen->bytes = most_bytes(moments, chosen->ways);
    if (chosen->bytes <= budget) return chosen;
    lowered = of_first - (chosen->bytes - budget);
  }
  ChosenWays smallest = smallest_ways(moments);
  if (smallest.bytes > budget) return std::nullopt;
  return smallest;
}

ChosenWays smallest_ways(std::span<const std::vector<std::vector<LayerWay>>> moments) {
  ChosenWays smallest;
  for (const std::vector<LayerWay>& ways : moments.front()) {
    const auto way = std::ranges::min_element(
        ways, {}, [](const LayerWay& one) { return std::pair(one.bytes, one.us); });
    smallest.ways.push_back(static_cast<size_t>(way - ways.begin()));
    smallest.us += way->us;
  }
  smallest.bytes = most_bytes(moments, smallest.ways);
  return smallest;
}

std::optional<ChosenWays> fastest_ways(std::span<const std::vector<LayerWay>> layers, i64 budget) {
  return WaysProgram(layers, budget).solve();
}

}  // namespace shardtool::plan
