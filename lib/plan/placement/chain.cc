#include "lib/plan/placement/chain.h"

#include <algorithm>
#include <limits>
#include <map>

#include "lib/base/error.h"
#include "lib/plan/placement/joint_plans.h"

namespace shardtool::plan {
namespace {

/// Runs the links in order with one plan per distinct (link, entering values).
template <class Make>
ChainPlan in_order(const Chain& chain, const Make& make) {
  ChainPlan whole;
  std::map<std::tuple<size_t, size_t, Values>, size_t> known;
  Values entering;
  for (const Link& link : chain.links) {
    const auto [found, is_new] =
        known.try_emplace({link.program, link.variant, entering}, whole.plans.size());
    if (is_new) whole.plans.push_back(make(link, entering));
    const ProgramPlan& plan = whole.plans[found->second];
    whole.of_link.push_back(found->second);
    whole.bytes += plan.bytes;
    entering = plan.left;
  }
  return whole;
}

/// One search per program of a chain.
class JointPlansOfChain {
 public:
  JointPlansOfChain(const Chain& chain, const AllowedMoves& allowed)
      : chain_(chain), allowed_(allowed) {}

  JointPlans& of(size_t program) {
    return plans_.try_emplace(program, *chain_.programs[program], allowed_).first->second;
  }

 private:
  const Chain& chain_;
  const AllowedMoves& allowed_;
  std::map<size_t, JointPlans> plans_;
};

/// Cheapest way to leave a link in some placements.
struct Way {
  i64 bytes = 0;
  Values from;      ///< in which the link was entered
  size_t plan = 0;  ///< of the link
};
using Ways = std::map<Values, Way>;  ///< by what the link leaves

/// Shortest paths over (link, placements between links), of at most so many bytes.
class Exits {
 public:
  Exits(const Chain& chain, const AllowedMoves& allowed, i64 most)
      : chain_(chain), joint_(chain, allowed), most_(most) {}

  ChainPlan cheapest() {
    std::vector<Ways> ways{{{Values(), Way()}}};
    for (const Link& link : chain_.links) ways.push_back(after(link, ways.back()));
    const auto last =
        std::ranges::min_element(ways.back(), {}, [](const auto& way) { return way.second.bytes; });
    ChainPlan whole;
    whole.bytes = last->second.bytes;
    std::map<size_t, size_t> numbers;  // of the plans that are used
    Values left = last->first;
    for (size_t i = ways.size(); i-- > 1;) {
      const Way& way = ways[i].at(left);
      const auto [number, is_new] = numbers.try_emplace(way.plan, whole.plans.size());
      if (is_new) whole.plans.push_back(plans_[way.plan]);
      whole.of_link.push_back(number->second);
      left = way.from;
    }
    std::ranges::reverse(whole.of_link);
    return whole;
  }

 private:
  Ways after(const Link& link, const Ways& before) {
    Ways ways;
    for (const auto& [entering, way] : before) {
      for (const size_t plan : exits_of(link.program, entering, most_ - way.bytes)) {
        const Way next{way.bytes + plans_[plan].bytes, entering, plan};
        if (next.bytes > most_) continue;
        const auto [found, is_new] = ways.try_emplace(plans_[plan].left, next);
        if (!is_new && next.bytes < found->second.bytes) found->second = next;
      }
    }
    if (ways.empty()) throw Error(ErrorCode::kPlacement, "no allowed moves run all ops");
    return ways;
  }

  /// Ways out of a program for at most so many bytes, and perhaps some for more.
  const std::vector<size_t>& exits_of(size_t program, const Values& entering, i64 most) {
    auto& [known_to, exits] =
        exits_.try_emplace({program, entering}, -1, std::vector<size_t>()).first->second;
    if (most <= known_to) return exits;
    known_to = most;
    exits.clear();
    for (ProgramPlan& plan : joint_.of(program).exits(entering, most)) {
      exits.push_back(plans_.size());
      plans_.push_back(std::move(plan));
    }
    return exits;
  }

  const Chain& chain_;
  JointPlansOfChain joint_;
  i64 most_;
  std::vector<ProgramPlan> plans_;
  /// By program and how it is entered: the most bytes that were asked for, and the plans.
  std::map<std::pair<size_t, Values>, std::pair<i64, std::vector<size_t>>> exits_;
};

/// Returns the bytes of the plan link by link, which all links together do not need; any number if
/// a link cannot run as the one before it leaves the values.
i64 bytes_by_link(const Chain& chain, const AllowedMoves& allowed) {
  try {
    return plan_by_link(chain, allowed).bytes;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kPlacement) throw;
    return std::numeric_limits<i64>::max();
  }
}

}  // namespace

ChainPlan plan_op_by_op(const Chain& chain, const ChooseAt& choose, Parity parity, Reuse reuse) {
  return in_order(chain, [&](const Link& link, const Values& entering) {
    return plan_op_by_op(
        *chain.programs[link.program],
        [&](size_t op, const ActionSet& set) { return choose(link, op, set); }, parity, reuse,
        entering);
  });
}

ChainPlan plan_by_link(const Chain& chain, const AllowedMoves& allowed) {
  JointPlansOfChain joint(chain, allowed);
  return in_order(chain, [&](const Link& link, const Values& entering) {
    return joint.of(link.program).cheapest(entering);
  });
}

ChainPlan plan_together(const Chain& chain, const AllowedMoves& allowed) {
  return Exits(chain, allowed, bytes_by_link(chain, allowed)).cheapest();
}

}  // namespace shardtool::plan
