#include "lib/plan/placement/chain.h"

#include <algorithm>
#include <map>

#include "lib/base/error.h"

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

/// Cheapest way to leave a link in some placements.
struct Way {
  i64 bytes = 0;
  Values from;      ///< in which the link was entered
  size_t plan = 0;  ///< of the link
};
using Ways = std::map<Values, Way>;  ///< by what the link leaves

/// Shortest paths over (link, placements between links).
class Exits {
 public:
  Exits(const Chain& chain, const AllowedMoves& allowed) : chain_(chain), allowed_(allowed) {}

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
      for (const size_t plan : exits_of(link.program, entering)) {
        const Way next{way.bytes + plans_[plan].bytes, entering, plan};
        const auto [found, is_new] = ways.try_emplace(plans_[plan].left, next);
        if (!is_new && next.bytes < found->second.bytes) found->second = next;
      }
    }
    if (ways.empty()) throw Error(ErrorCode::kPlacement, "no allowed moves run all ops");
    return ways;
  }

  const std::vector<size_t>& exits_of(size_t program, const Values& entering) {
    const auto [found, is_new] = exits_.try_emplace({program, entering});
    if (!is_new) return found->second;
    for (ProgramPlan& plan : plan_exits(*chain_.programs[program], allowed_, entering)) {
      found->second.push_back(plans_.size());
      plans_.push_back(std::move(plan));
    }
    return found->second;
  }

  const Chain& chain_;
  const AllowedMoves& allowed_;
  std::vector<ProgramPlan> plans_;
  std::map<std::pair<size_t, Values>, std::vector<size_t>> exits_;
};

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
  return in_order(chain, [&](const Link& link, const Values& entering) {
    return plan_together(*chain.programs[link.program], allowed, entering);
  });
}

ChainPlan plan_together(const Chain& chain, const AllowedMoves& allowed) {
  return Exits(chain, allowed).cheapest();
}

}  // namespace shardtool::plan
