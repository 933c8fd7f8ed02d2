#include "lib/plan/placement/redistribute.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/base/error.h"

namespace shardtool::plan {
namespace {

using Kind = Placement::Kind;

/// Steps that leave a placement of one tensor on one mesh.
class Steps {
 public:
  Steps(const mesh::Mesh& mesh, const Shape& shape) : mesh_(mesh), shape_(shape) {
    const auto elements = element_count(shape);
    const auto all = elements ? checked_mul(*elements, 2 * mesh.size()) : std::nullopt;
    if (!all) throw Error(ErrorCode::kLimit, "the elements of a redistribution are above 2^63");
    elements_ = *elements;
  }

  bool is_even(const Placements& state) const {
    for (int d = 0; d < rank(); ++d) {
      if (shape_[static_cast<size_t>(d)] % parts(state, mesh_, d) != 0) return false;
    }
    return true;
  }

  std::vector<RedistributionStep> leaving(const Placements& state) const {
    std::vector<RedistributionStep> steps;
    add_slices(state, steps);
    add_moves_of_parts(state, steps);
    add_reductions(state, steps);
    add_permutations(state, steps);
    return steps;
  }

 private:
  int rank() const { return static_cast<int>(shape_.size()); }
  int mesh_axes() const { return static_cast<int>(mesh_.axes().size()); }
  i64 size_of(int mesh_axis) const { return mesh_.axes()[static_cast<size_t>(mesh_axis)].size; }
  i64 size_of(const std::vector<int>& axes) const {
    i64 product = 1;
    for (const int a : axes) product *= size_of(a);
    return product;
  }
  /// Elements on one device.
  i64 local(const Placements& state) const {
    i64 product = 1;
    for (int d = 0; d < rank(); ++d) product *= parts(state, mesh_, d);
    return elements_ / product;
  }

  static Placements placed(Placements state, const std::vector<int>& axes, const Placement& to) {
    for (const int a : axes) {
      Placement& on = state.on[static_cast<size_t>(a)];
      if (on.is(Kind::kSharded)) std::erase(state.order[static_cast<size_t>(on.axis)], a);
      on = to;
      if (to.is(Kind::kSharded)) state.order[static_cast<size_t>(to.axis)].push_back(a);
    }
    return state;
  }

  void add(RedistributionStep step, std::vector<RedistributionStep>& steps) const {
    if (is_even(step.after)) steps.push_back(std::move(step));
  }

  void add_slices(const Placements& state, std::vector<RedistributionStep>& steps) const {
    for (int a = 0; a < mesh_axes(); ++a) {
      if (!state.on[static_cast<size_t>(a)].is(Kind::kReplicated)) continue;
      for (int d = 0; d < rank(); ++d) {
        add({Move::kSlice, {a}, -1, d, 0, placed(state, {a}, Placement::sharded(d))}, steps);
      }
    }
  }

  /// Gathers the innermost mesh axes of a tensor axis or moves them to another one.
  void add_moves_of_parts(const Placements& state, std::vector<RedistributionStep>& steps) const {
    for (int d = 0; d < rank(); ++d) {
      const std::vector<int>& order = state.order[static_cast<size_t>(d)];
      for (size_t first = 0; first < order.size(); ++first) {
        const std::vector<int> axes(order.begin() + static_cast<std::ptrdiff_t>(first),
                                    order.end());
        const i64 others = local(state) * (size_of(axes) - 1);
        add({Move::kAllGather, axes, d, -1, mesh_.size() * others,
             placed(state, axes, Placement::replicated())},
            steps);
        for (int e = 0; e < rank(); ++e) {
          if (e == d) continue;
          add({Move::kAllToAll, axes, d, e, mesh_.size() / size_of(axes) * others,
               placed(state, axes, Placement::sharded(e))},
              steps);
        }
      }
    }
  }

  /// Reduces any Partial axes of one op at once to R; one at a time to S.
  void add_reductions(const Placements& state, std::vector<RedistributionStep>& steps) const {
    for (const std::vector<int>& axes : partial_subsets(state)) {
      const i64 n = size_of(axes);
      const i64 moved = mesh_.size() / n * (n - 1) * local(state);
      add({Move::kAllReduce, axes, -1, -1, 2 * moved, placed(state, axes, Placement::replicated())},
          steps);
      if (axes.size() != 1) continue;
      for (int d = 0; d < rank(); ++d) {
        add({Move::kReduceScatter, axes, -1, d, moved, placed(state, axes, Placement::sharded(d))},
            steps);
      }
    }
  }

  std::vector<std::vector<int>> partial_subsets(const Placements& state) const {
    std::vector<std::vector<int>> subsets;
    for (int a = 0; a < mesh_axes(); ++a) {
      const Placement& on = state.on[static_cast<size_t>(a)];
      if (!on.is(Kind::kPartial)) continue;
      for (size_t s = 0, count = subsets.size(); s < count; ++s) {
        if (state.on[static_cast<size_t>(subsets[s].front())] != on) continue;
        subsets.push_back(subsets[s]);
        subsets.back().push_back(a);
      }
      subsets.push_back({a});
    }
    return subsets;
  }

  /// Adds every other placement with equal numbers of parts per tensor axis and the same Partial
  /// axes.
  void add_permutations(const Placements& state, std::vector<RedistributionStep>& steps) const {
    std::vector<int> free;
    Placements bare = state;
    for (int a = 0; a < mesh_axes(); ++a) {
      const bool movable = state.on[static_cast<size_t>(a)].is(Kind::kSharded) ||
                           state.on[static_cast<size_t>(a)].is(Kind::kReplicated);
      if (movable) free.push_back(a);
      if (movable) bare = placed(std::move(bare), {a}, Placement::replicated());
    }
    arrange(state, bare, 0, free, steps);
  }

  /// Assigns free mesh axes to tensor axes from d on until each has as many parts as in `state`.
  void arrange(const Placements& state, const Placements& partial, int d,
               const std::vector<int>& free, std::vector<RedistributionStep>& steps) const {
    if (d == rank()) {
      if (partial != state) add_permutation(state, partial, steps);
      return;
    }
    const i64 wanted = parts(state, mesh_, d);
    const i64 have = parts(partial, mesh_, d);
    if (have == wanted) arrange(state, partial, d + 1, free, steps);
    for (const int a : free) {
      if (size_of(a) == 1 || wanted % (have * size_of(a)) != 0) continue;
      std::vector<int> rest = free;
      std::erase(rest, a);
      arrange(state, placed(partial, {a}, Placement::sharded(d)), d, rest, steps);
    }
  }

  void add_permutation(const Placements& state, const Placements& after,
                       std::vector<RedistributionStep>& steps) const {
    i64 movers = 0;
    for (i64 rank = 0; rank < mesh_.size(); ++rank) {
      movers += static_cast<i64>(part(state, rank) != part(after, rank));
    }
    std::vector<int> changed;
    for (int a = 0; a < mesh_axes(); ++a) {
      if (state.on[static_cast<size_t>(a)] != after.on[static_cast<size_t>(a)])
        changed.push_back(a);
    }
    add({Move::kPermute, changed, -1, -1, movers * local(state), after}, steps);
  }

  /// Index of a device's part along each tensor axis.
  std::vector<i64> part(const Placements& state, i64 device) const {
    const mesh::Coordinate at = mesh_.coordinate(device);
    std::vector<i64> index;
    for (const std::vector<int>& order : state.order) {
      i64 digits = 0;
      for (const int a : order) digits = digits * size_of(a) + at[static_cast<size_t>(a)];
      index.push_back(digits);
    }
    return index;
  }

  const mesh::Mesh& mesh_;
  const Shape& shape_;
  i64 elements_ = 0;
};

/// Shortest paths from one placement.
class Search {
 public:
  Search(const Steps& steps, const Placements& from) : steps_(steps) { reach({0, 0}, from, {}); }

  std::optional<Redistribution> path_to(const Placements& to) {
    while (!queue_.empty()) {
      const auto [cost, state] = *queue_.begin();
      queue_.erase(queue_.begin());
      if (state == to) return way_back(state);
      for (RedistributionStep& step : steps_.leaving(state)) {
        const Cost there{cost.first + step.elements, cost.second + 1};
        const Placements after = step.after;
        reach(there, after, {state, std::move(step)});
      }
    }
    return std::nullopt;
  }

 private:
  using Cost = std::pair<i64, int>;  ///< elements, steps
  struct Arrival {
    Placements from;
    RedistributionStep step;
  };
  struct Reached {
    Cost cost;
    Arrival arrival;
  };

  void reach(Cost cost, const Placements& state, Arrival arrival) {
    const auto known = reached_.find(state);
    if (known != reached_.end()) {
      if (known->second.cost <= cost) return;
      queue_.erase({known->second.cost, state});
    }
    reached_.insert_or_assign(state, Reached{cost, std::move(arrival)});
    queue_.emplace(cost, state);
  }

  Redistribution way_back(const Placements& to) const {
    Redistribution found;
    for (const Reached* at = &reached_.at(to); at->cost.second > 0;
         at = &reached_.at(at->arrival.from)) {
      found.steps.push_back(at->arrival.step);
      found.elements += at->arrival.step.elements;
    }
    std::reverse(found.steps.begin(), found.steps.end());
    return found;
  }

  const Steps& steps_;
  std::map<Placements, Reached> reached_;
  std::set<std::pair<Cost, Placements>> queue_;
};

}  // namespace

std::optional<Redistribution> redistribute(const mesh::Mesh& mesh, const Shape& shape,
                                           const Placements& from, const Placements& to) {
  const Steps steps(mesh, shape);
  for (const Placements* placements : {&from, &to}) {
    if (steps.is_even(*placements)) continue;
    throw Error(ErrorCode::kNotDivisible,
                fmt::format("{} does not cut {} evenly", to_string(*placements, mesh),
                            shardtool::to_string(shape)));
  }
  return Search(steps, from).path_to(to);
}

}  // namespace shardtool::plan
