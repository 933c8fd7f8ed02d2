#include "lib/plan/placement/joint_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lib/base/error.h"
#include "lib/plan/placement/numbered_ops.h"

namespace shardtool::plan {
namespace {

constexpr i64 kAnyBytes = std::numeric_limits<i64>::max();

struct NumbersHash {
  size_t operator()(const Numbers& numbers) const {
    size_t hash = numbers.size();
    for (const int number : numbers) hash = hash * 1'000'003 + static_cast<size_t>(number);
    return hash;
  }
};

/// Bits, as many as are needed.
class Bits {
 public:
  void add(size_t bit) {
    if (bit / kWord >= words_.size()) words_.resize(bit / kWord + 1);
    words_[bit / kWord] |= std::uint64_t{1} << bit % kWord;
  }
  /// True if the other has all these bits.
  bool are_in(const Bits& other) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t there = i < other.words_.size() ? other.words_[i] : 0;
      if ((words_[i] & ~there) != 0) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kWord = 64;
  std::vector<std::uint64_t> words_;
};

/// The placements of the live values in a state, as bits: of n values placement p of number v is
/// bit n p + v.
struct Reach {
  Bits has;
  Bits gives;  ///< for free

  bool gives_all(const Reach& other) const { return other.has.are_in(gives); }
};

/// Shortest paths from one set of placements.
class StateSearch {
 public:
  StateSearch(NumberedOps& ops, const Values& entering)
      : ops_(ops),
        program_(ops.program()),
        reached_(program_.ops.size() + 1),
        settled_(program_.ops.size() + 1) {
    std::vector<Numbers> placed;
    for (const int value : ops_.live(0)) placed.push_back(entered(value, entering));
    reach(0, encoded(0, std::move(placed)), {});
  }

  /// Plans to the next cheapest end; nullopt if there is no other of at most so many bytes.
  std::optional<ProgramPlan> next(i64 most) {
    while (!queue_.empty()) {
      const auto [bytes, op, node] = queue_.top();
      if (bytes > most) return std::nullopt;
      queue_.pop();
      if (nodes_[node].by.bytes != bytes || nodes_[node].is_settled) continue;
      nodes_[node].is_settled = true;
      if (!settle(node)) continue;
      if (op == program_.ops.size()) return way_to(node);
      extend(node);
    }
    return std::nullopt;
  }

 private:
  /// The cheapest known way to a state.
  struct Arrival {
    i64 bytes = 0;
    size_t from = 0;                ///< node of the state before
    const OpChoices* of = nullptr;  ///< of the op in between
    size_t chosen = 0;
  };
  /// A state: for every live value the number of its placements, and these, ascending.
  struct Node {
    size_t op = 0;
    const Numbers* state = nullptr;
    Arrival by = {};
    bool is_settled = false;
  };

  Numbers entered(int value, const Values& entering) {
    Numbers numbers;
    for (const Operand& operand : program_.operands) {
      if (ops_.value(operand.name) != value) continue;
      const auto found = entering.find(operand.name);
      const auto all =
          found == entering.end() ? std::set<std::vector<Placement>>{operand.on} : found->second;
      for (const std::vector<Placement>& on : all) numbers.push_back(ops_.number(value, on));
    }
    std::ranges::sort(numbers);
    return numbers;
  }

  /// Drops placements that another one gives for free, which therefore save nothing later.
  Numbers encoded(size_t op, std::vector<Numbers> placed) const {
    Numbers state;
    for (size_t i = 0; i < placed.size(); ++i) {
      const KnownPlacements& known = ops_.known(ops_.live(op)[i]);
      Numbers& numbers = placed[i];
      for (auto part = numbers.begin(); part != numbers.end();) {
        const bool is_free = std::ranges::any_of(
            numbers, [&](int whole) { return whole != *part && known.gives(whole, *part); });
        part = is_free ? numbers.erase(part) : std::next(part);
      }
      state.push_back(static_cast<int>(numbers.size()));
      state.insert(state.end(), numbers.begin(), numbers.end());
    }
    return state;
  }

  static std::vector<Numbers> decoded(const Numbers& state) {
    std::vector<Numbers> placed;
    for (auto at = state.begin(); at != state.end(); at += *at + 1)
      placed.emplace_back(at + 1, at + 1 + *at);
    return placed;
  }

  void reach(size_t op, Numbers state, const Arrival& arrival) {
    const auto [known, is_new] = reached_[op].try_emplace(std::move(state), nodes_.size());
    if (is_new) {
      nodes_.push_back({op, &known->first});
      if (nodes_.size() > kMostStates) {
        throw Error(ErrorCode::kLimit,
                    fmt::format("a joint plan of {} ops needs more than {} states",
                                program_.ops.size(), kMostStates))
            .help("decide op by op (--solver greedy), or on a mesh of fewer axes");
      }
    }
    Node& node = nodes_[known->second];
    if (!is_new && node.by.bytes <= arrival.bytes) return;
    node.by = arrival;
    queue_.emplace(arrival.bytes, op, known->second);
  }

  /// Returns false for a state of which one that was reached for no more bytes gives every
  /// placement. Of those that were reached, keeps the ones of which no other gives all.
  bool settle(size_t node) {
    std::vector<Reach>& settled = settled_[nodes_[node].op];
    const Reach reach = reach_of(node);
    if (std::ranges::any_of(settled, [&](const Reach& other) { return other.gives_all(reach); }))
      return false;
    std::erase_if(settled, [&](const Reach& other) { return reach.gives_all(other); });
    settled.push_back(reach);
    return true;
  }

  Reach reach_of(size_t node) const {
    Reach reach;
    const Numbers& live = ops_.live(nodes_[node].op);
    const std::vector<Numbers> placed = decoded(*nodes_[node].state);
    for (size_t v = 0; v < live.size(); ++v) {
      const KnownPlacements& known = ops_.known(live[v]);
      const auto bit = [&](int placement) {
        return live.size() * static_cast<size_t>(placement) + v;
      };
      for (const int whole : placed[v]) {
        reach.has.add(bit(whole));
        for (int part = 0; part < known.size(); ++part) {
          if (known.gives(whole, part)) reach.gives.add(bit(part));
        }
      }
    }
    return reach;
  }

  void extend(size_t node) {
    const size_t op = nodes_[node].op;
    const std::vector<Numbers> placed = decoded(*nodes_[node].state);
    std::vector<const Numbers*> sources;
    for (const int value : ops_.in(op)) sources.push_back(&placed[position(op, value)]);
    std::vector<size_t> at(sources.size(), 0);
    for (;;) {
      Numbers from;
      for (size_t i = 0; i < at.size(); ++i) from.push_back((*sources[i])[at[i]]);
      const OpChoices& of = ops_.choices(op, from);
      for (size_t chosen = 0; chosen < of.choices.size(); ++chosen) {
        const OpChoice& choice = of.choices[chosen];
        reach(op + 1, after(op, placed, choice),
              {nodes_[node].by.bytes + choice.action.bytes, node, &of, chosen});
      }
      size_t i = at.size();
      while (i > 0 && ++at[i - 1] == sources[i - 1]->size()) at[--i] = 0;
      if (i == 0) return;
    }
  }

  size_t position(size_t op, int value) const {
    const Numbers& live = ops_.live(op);
    return static_cast<size_t>(std::ranges::lower_bound(live, value) - live.begin());
  }

  /// Returns the state after a choice: the operands in their new placements, too, and the results.
  Numbers after(size_t op, const std::vector<Numbers>& placed, const OpChoice& choice) const {
    std::vector<Numbers> next;
    const Numbers &in = ops_.in(op), &out = ops_.out(op);
    for (const int value : ops_.live(op + 1)) {
      const auto made = std::ranges::find(out, value);
      if (made != out.end()) {
        next.push_back({choice.results[static_cast<size_t>(made - out.begin())]});
        continue;
      }
      Numbers numbers = placed[position(op, value)];
      for (size_t i = 0; i < in.size(); ++i) {
        if (in[i] != value) continue;
        const auto place = std::ranges::lower_bound(numbers, choice.taken[i]);
        if (place == numbers.end() || *place != choice.taken[i])
          numbers.insert(place, choice.taken[i]);
      }
      next.push_back(std::move(numbers));
    }
    return encoded(op + 1, std::move(next));
  }

  std::set<std::vector<Placement>> placements(size_t node, int value) const {
    std::set<std::vector<Placement>> all;
    const std::vector<Numbers> placed = decoded(*nodes_[node].state);
    for (const int number : placed[position(nodes_[node].op, value)])
      all.insert(ops_.known(value).at(number));
    return all;
  }

  ProgramPlan way_to(size_t last) const {
    ProgramPlan plan;
    plan.bytes = nodes_[last].by.bytes;
    for (const auto& [name, later] : program_.kept)
      plan.left[later] = placements(last, ops_.value(name));
    for (size_t at = last; nodes_[at].op > 0;) {
      const Node& node = nodes_[at];
      plan.actions.push_back(node.by.of->choices[node.by.chosen].action);
      plan.sets.push_back(node.by.of->set);
      at = node.by.from;
      Values& available = plan.available.emplace_back();
      for (const std::string& name : program_.ops[nodes_[at].op].in)
        available[name] = placements(at, ops_.value(name));
    }
    std::ranges::reverse(plan.actions);
    std::ranges::reverse(plan.sets);
    std::ranges::reverse(plan.available);
    return plan;
  }

  using Entry = std::tuple<i64, size_t, size_t>;  // bytes, op, node
  NumberedOps& ops_;
  const Program& program_;
  std::vector<Node> nodes_;
  std::vector<std::unordered_map<Numbers, size_t, NumbersHash>> reached_;  ///< by op
  std::vector<std::vector<Reach>> settled_;                                ///< by op
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

JointPlans::JointPlans(const Program& program, const AllowedMoves& allowed)
    : ops_(std::make_unique<NumberedOps>(program, allowed)) {}
JointPlans::~JointPlans() = default;

ProgramPlan JointPlans::cheapest(const Values& entering) {
  auto plan = StateSearch(*ops_, entering).next(kAnyBytes);
  if (!plan) throw Error(ErrorCode::kPlacement, "no allowed moves run all ops");
  return std::move(*plan);
}

std::vector<ProgramPlan> JointPlans::exits(const Values& entering, i64 most) {
  StateSearch search(*ops_, entering);
  std::vector<ProgramPlan> plans;
  while (auto plan = search.next(most)) plans.push_back(std::move(*plan));
  return plans;
}

ProgramPlan plan_together(const Program& program, const AllowedMoves& allowed,
                          const Values& entering) {
  return JointPlans(program, allowed).cheapest(entering);
}

}  // namespace shardtool::plan
