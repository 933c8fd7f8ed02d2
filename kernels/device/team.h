#pragma once

#include <type_traits>

#include "kernels/both.h"
#include "lib/base/checked.h"

/// A team computes one long item: 32 or 256 lanes, of which lane l has the numbers l, l + lanes,
/// ... of the item. A host's team is one thread; a GPU's is a warp or a block. Both offer
///
///     for_each(n, f)           f(k) for every k below n
///     write(n, f, y)           y[k] = f(k) for every k below n; f may read y[k]
///     sum<T>(n, f)             the sum of f(k), for every lane
///     largest<T>(n, f, least)  the largest of f(k) and `least`, for every lane; no NaN
///     multiply_rows(m, row_of, n, x, store)
///                              store(p, the sum of x[k] * row_of(p)[k] over k below n) for every p
///                              below m, by one lane, always the same; for teams of 32 lanes
///     add_rows(m, weights, row_of, n, y)
///                              y[i] = sum of weights[p] * row_of(p)[i] over p below m, in
///                              ascending order, for every i below n
///     is_first()               true for one lane
///     sync()                   what lanes wrote before it, all lanes read after it
///
/// All lanes call the same functions in the same order. f is called once for every k.
///
/// The order of a sum of floats is part of every op's definition, and the same on all machines:
/// each lane adds its numbers to 0 in ascending order; within each 32 lanes, lane l adds lane l +
/// 16, then l + 8, l + 4, l + 2, l + 1; and the sums of 32 lanes are added in the same way.
namespace shardtool::kernels {

inline constexpr int kWarpLanes = 32;
inline constexpr int kMostLanes = 256;

/// Number of lanes for items of n numbers.
SHARDTOOL_BOTH constexpr int lanes_for(i64 n) {
  constexpr i64 kMostOfWarp = 512;
  return n > kMostOfWarp ? kMostLanes : kWarpLanes;
}

/// One thread that keeps the lanes' sums.
class HostTeam {
 public:
  SHARDTOOL_BOTH explicit HostTeam(int lanes) : lanes_(lanes) {}

  template <class Function>
  SHARDTOOL_BOTH void for_each(i64 n, const Function& f) const {
    for (i64 k = 0; k < n; ++k) f(k);
  }
  template <class T, class Function>
  SHARDTOOL_BOTH void write(i64 n, const Function& f, T* y) const {
    for (i64 k = 0; k < n; ++k) y[k] = f(k);
  }
  template <class T, class Function>
  SHARDTOOL_BOTH T sum(i64 n, const Function& f) const {
    if constexpr (std::is_floating_point_v<T>) {
      // Lanes without a number would add 0, which changes no sum.
      if (n <= kFewLanes) return sum_of_lanes<T, kFewLanes>(n, f);
      return lanes_ == kWarpLanes ? sum_of_lanes<T, kWarpLanes>(n, f)
                                  : sum_of_lanes<T, kMostLanes>(n, f);
    } else {
      T sum{};  // exact, so it has no order
      for (i64 k = 0; k < n; ++k) sum += f(k);
      return sum;
    }
  }
  template <class T, class RowOf, class Store>
  SHARDTOOL_BOTH void multiply_rows(i64 m, const RowOf& row_of, i64 n, const T* x,
                                    const Store& store) const {
    for (i64 p = 0; p < m; ++p) {
      const T* const row = row_of(p);
      store(p, sum<T>(n, [x, row](i64 k) { return x[k] * row[k]; }));
    }
  }
  template <class T, class Function>
  SHARDTOOL_BOTH T largest(i64 n, const Function& f, T least) const {
    for (i64 k = 0; k < n; ++k) {
      const T number = f(k);
      if (number > least) least = number;
    }
    return least;
  }
  template <class T, class RowOf>
  SHARDTOOL_BOTH void add_rows(i64 m, const T* weights, const RowOf& row_of, i64 n, T* y) const {
    i64 first = 0;
    for (; first + kWarpLanes <= n; first += kWarpLanes) {
      T own[kWarpLanes]{};
      for (i64 p = 0; p < m; ++p) {
        const T weight = weights[p];
        const T* const x = row_of(p) + first;
        for (int l = 0; l < kWarpLanes; ++l) own[l] += weight * x[l];
      }
      for (int l = 0; l < kWarpLanes; ++l) y[first + l] = own[l];
    }
    for (; first < n; ++first) {
      T own{};
      for (i64 p = 0; p < m; ++p) own += weights[p] * row_of(p)[first];
      y[first] = own;
    }
  }
  SHARDTOOL_BOTH bool is_first() const { return true; }
  SHARDTOOL_BOTH void sync() const {}

 private:
  static constexpr int kFewLanes = 8;

  template <class T, int kLanes, class Function>
  SHARDTOOL_BOTH static T sum_of_lanes(i64 n, const Function& f) {
    T own[kLanes]{};
    i64 k = 0;
    for (; k + kLanes <= n; k += kLanes) {
      for (int l = 0; l < kLanes; ++l) own[l] += f(k + l);
    }
    for (int l = 0; k + l < n; ++l) own[l] += f(k + l);
    constexpr int kInWarp = kLanes < kWarpLanes ? kLanes : kWarpLanes;
    for (int first = 0; first < kLanes; first += kInWarp) {
      add_halves<kInWarp>(own + first);
      own[first / kInWarp] = own[first];
    }
    add_halves<kLanes / kInWarp>(own);
    return own[0];
  }
  template <int kCount, class T>
  SHARDTOOL_BOTH static void add_halves(T* own) {
    if constexpr (kCount > 1) {
      for (int l = 0; l < kCount / 2; ++l) own[l] += own[l + kCount / 2];
      add_halves<kCount / 2>(own);
    }
  }

  int lanes_;
};

/// One lane of many threads. Lanes has
///
///     int count() const                  number of lanes of the team
///     int lane() const                   number of this one
///     T other(T x, int apart) const      x of lane XOR apart, which is below 32
///     T* slots<T>() const                memory of the team for a number per 32 lanes
///     void sync() const
template <class Lanes>
class LaneTeam {
 public:
  SHARDTOOL_BOTH explicit LaneTeam(const Lanes& lanes) : lanes_(lanes) {}

  template <class Function>
  SHARDTOOL_BOTH void for_each(i64 n, const Function& f) const {
    for (i64 k = lanes_.lane(); k < n; k += lanes_.count()) f(k);
  }
  template <class T, class Function>
  SHARDTOOL_BOTH void write(i64 n, const Function& f, T* y) const {
    const i64 count = lanes_.count();
    i64 k = lanes_.lane();
    // Reads before it writes, since a compiler does not know that y[k] is read for itself alone.
    for (; k + (kAtOnce - 1) * count < n; k += kAtOnce * count) {
      T made[kAtOnce];
      for (int i = 0; i < kAtOnce; ++i) made[i] = f(k + i * count);
      for (int i = 0; i < kAtOnce; ++i) y[k + i * count] = made[i];
    }
    for (; k < n; k += count) y[k] = f(k);
  }
  template <class T, class Function>
  SHARDTOOL_BOTH T sum(i64 n, const Function& f) const {
    T own{};
    const i64 count = lanes_.count();
    i64 k = lanes_.lane();
    for (; k + (kAtOnce - 1) * count < n; k += kAtOnce * count) {
      T made[kAtOnce];
      for (int i = 0; i < kAtOnce; ++i) made[i] = f(k + i * count);
      for (int i = 0; i < kAtOnce; ++i) own += made[i];
    }
    for (; k < n; k += count) own += f(k);
    return joined(own, [](T a, T b) { return a + b; });
  }
  /// A warp has kRows sums at once: with every lane that is added, a lane gives half of its sums
  /// away, so that few numbers move and each sum has its order.
  template <class T, class RowOf, class Store>
  SHARDTOOL_BOTH void multiply_rows(i64 m, const RowOf& row_of, i64 n, const T* x,
                                    const Store& store) const {
    constexpr int kRows = 8;
    constexpr int kLanesPerRow = kWarpLanes / kRows;
    for (i64 p = 0; p < m; p += kRows) {
      T own[kRows]{};
      const T* rows[kRows];
      for (int r = 0; r < kRows; ++r) rows[r] = row_of(p + r < m ? p + r : m - 1);
      for_each(n, [&](i64 k) {
        for (int r = 0; r < kRows; ++r) own[r] += x[k] * rows[r][k];
      });
      halve<kWarpLanes / 2, kRows / 2>(own);
      const i64 mine = p + lanes_.lane() / kLanesPerRow;
      if (lanes_.lane() % kLanesPerRow == 0 && mine < m) store(mine, own[0]);
    }
  }
  template <class T, class Function>
  SHARDTOOL_BOTH T largest(i64 n, const Function& f, T least) const {
    for_each(n, [&](i64 k) {
      const T number = f(k);
      if (number > least) least = number;
    });
    return joined(least, [](T a, T b) { return b > a ? b : a; });
  }
  template <class T, class RowOf>
  SHARDTOOL_BOTH void add_rows(i64 m, const T* weights, const RowOf& row_of, i64 n, T* y) const {
    for_each(n, [&](i64 i) {
      T own{};
      i64 p = 0;
      for (; p + kAtOnce <= m; p += kAtOnce) {
        T made[kAtOnce];
        for (int a = 0; a < kAtOnce; ++a) made[a] = weights[p + a] * row_of(p + a)[i];
        for (int a = 0; a < kAtOnce; ++a) own += made[a];
      }
      for (; p < m; ++p) own += weights[p] * row_of(p)[i];
      y[i] = own;
    });
  }
  SHARDTOOL_BOTH bool is_first() const { return lanes_.lane() == 0; }
  SHARDTOOL_BOTH void sync() const { lanes_.sync(); }

 private:
  static constexpr int kAtOnce = 4;
  static constexpr int kMostWarps = kMostLanes / kWarpLanes;

  template <int kApart, int kHalf, class T>
  SHARDTOOL_BOTH void halve(T* own) const {
    if constexpr (kApart > 0) {
      const bool is_upper = (lanes_.lane() & kApart) != 0;
      if constexpr (kHalf == 0) own[0] += lanes_.other(own[0], kApart);
      for (int s = 0; s < kHalf; ++s) {
        const T given = is_upper ? own[s] : own[s + kHalf];
        const T kept = is_upper ? own[s + kHalf] : own[s];
        own[s] = kept + lanes_.other(given, kApart);
      }
      halve<kApart / 2, kHalf / 2>(own);
    }
  }

  /// join(a, b) equals join(b, a), so all lanes come to the same result.
  template <class T, class Join>
  SHARDTOOL_BOTH T joined(T own, const Join& join) const {
    for (int apart = kWarpLanes / 2; apart > 0; apart /= 2) {
      own = join(own, lanes_.other(own, apart));
    }
    if (lanes_.count() == kWarpLanes) return own;
    T* const slots = lanes_.template slots<T>();
    lanes_.sync();  // the results of the call before have been read
    if (lanes_.lane() % kWarpLanes == 0) slots[lanes_.lane() / kWarpLanes] = own;
    lanes_.sync();
    T all[kMostWarps];
    for (int w = 0; w < kMostWarps; ++w) all[w] = slots[w];
    for (int apart = kMostWarps / 2; apart > 0; apart /= 2) {
      for (int w = 0; w < apart; ++w) all[w] = join(all[w], all[w + apart]);
    }
    return all[0];
  }

  Lanes lanes_;
};

}  // namespace shardtool::kernels
