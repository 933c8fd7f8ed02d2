#include "lib/plan/placement/numbered_ops.h"

#include <algorithm>
#include <set>

namespace shardtool::plan {
namespace {

/// True if slices alone lead from one placement to the other.
bool is_slice_of(const std::vector<Placement>& whole, const std::vector<Placement>& part) {
  for (size_t a = 0; a < whole.size(); ++a) {
    const bool sliced =
        whole[a].is(Placement::Kind::kReplicated) && part[a].is(Placement::Kind::kSharded);
    if (whole[a] != part[a] && !sliced) return false;
  }
  return true;
}

/// Returns every combination of one choice per place.
template <class T>
std::vector<std::vector<T>> products_of(const std::vector<std::vector<T>>& choices) {
  std::vector<std::vector<T>> products{{}};
  for (const std::vector<T>& of_place : choices) {
    std::vector<std::vector<T>> longer;
    for (const std::vector<T>& product : products) {
      for (const T& choice : of_place) {
        longer.push_back(product);
        longer.back().push_back(choice);
      }
    }
    products = std::move(longer);
  }
  return products;
}

}  // namespace

int KnownPlacements::number(const std::vector<Placement>& on, const Gives& gives) {
  const auto [found, is_new] = numbers_.try_emplace(on, static_cast<int>(placements_.size()));
  if (!is_new) return found->second;
  std::vector<bool>& given = gives_.emplace_back();
  for (size_t i = 0; i < placements_.size(); ++i) {
    given.push_back(gives(on, placements_[i]));
    gives_[i].push_back(gives(placements_[i], on));
  }
  given.push_back(true);
  placements_.push_back(on);
  return found->second;
}

NumberedOps::NumberedOps(const Program& program, const AllowedMoves& allowed)
    : program_(program), allowed_(allowed), shapes_(program) {
  const auto add = [this](const std::string& name) {
    values_.emplace(name, static_cast<int>(values_.size()));
    operands_.push_back(&shapes_.of(name));
  };
  for (const Operand& operand : program.operands) add(operand.name);
  for (const ProgramOp& op : program.ops) std::ranges::for_each(op.out, add);
  for (const ProgramOp& op : program.ops) {
    in_.push_back(numbers_of(op.in));
    out_.push_back(numbers_of(op.out));
  }
  known_.resize(values_.size());
  find_live();
  find_needs();
}

int NumberedOps::number(int value, const std::vector<Placement>& on) {
  return known_[static_cast<size_t>(value)].number(
      on, [&](const auto& whole, const auto& part) { return is_as_cheap(value, whole, part); });
}

/// A slice is free unless it ends up behind another cut of the same tensor axis. If the value is
/// cut evenly however it is, costs are a metric (redistribute), so that one from which the slice is
/// free is as cheap to move. Uneven cuts are priced axis by axis: moves to all that the ops need
/// are compared. What later programs need is not known.
bool NumberedOps::is_as_cheap(int value, const std::vector<Placement>& whole,
                              const std::vector<Placement>& part) {
  if (!allowed_.slice || !is_slice_of(whole, part)) return false;
  const auto v = static_cast<size_t>(value);
  const auto is_uneven = [this](i64 extent) { return extent % program_.mesh.size() != 0; };
  if (std::ranges::none_of(operands_[v]->shape, is_uneven)) return price(value, whole, part) == 0;
  const bool is_kept = std::ranges::find(live_.back(), value) != live_.back().end();
  return !is_kept && std::ranges::all_of(needs_[v], [&](const std::vector<Placement>& needed) {
    const auto from_part = price(value, part, needed);
    if (!from_part) return true;
    const auto from_whole = price(value, whole, needed);
    return from_whole && *from_whole <= *from_part;
  });
}

/// Returns the price of a move of an operand; nullopt if it is not allowed.
std::optional<i64> NumberedOps::price(int value, const std::vector<Placement>& from,
                                      const std::vector<Placement>& to) {
  const auto [found, is_new] = prices_.try_emplace({value, from, to});
  if (!is_new) return found->second;
  ActionSet set;
  set.mesh = program_.mesh;
  set.operands = {*operands_[static_cast<size_t>(value)]};
  set.operands.front().on = from;
  for (size_t a = 0; a < to.size(); ++a) {
    const OpRow row{{to[a]}, Placement::replicated()};
    if (!allowed_.contains(move_between(from[a], to[a])) || !is_feasible(set, row, a))
      return std::nullopt;
  }
  return found->second = price_of_operand(set, 0, to);
}

const OpChoices& NumberedOps::choices(size_t op, const Numbers& from) {
  const auto [found, is_new] = choices_.try_emplace({op, from});
  if (is_new) found->second = made(op, from);
  return found->second;
}

Numbers NumberedOps::numbers_of(const std::vector<std::string>& names) const {
  Numbers numbers;
  for (const std::string& name : names) numbers.push_back(values_.at(name));
  return numbers;
}

void NumberedOps::find_live() {
  std::set<int> live;
  for (const auto& [name, later] : program_.kept) live.insert(values_.at(name));
  live_.resize(program_.ops.size() + 1);
  live_.back().assign(live.begin(), live.end());
  for (size_t op = program_.ops.size(); op-- > 0;) {
    for (const int value : out_[op]) live.erase(value);
    live.insert(in_[op].begin(), in_[op].end());
    live_[op].assign(live.begin(), live.end());
  }
}

void NumberedOps::find_needs() {
  needs_.resize(values_.size());
  for (size_t op = 0; op < in_.size(); ++op) {
    for (size_t i = 0; i < in_[op].size(); ++i) {
      std::set<Placement> of_axis{Placement::replicated()};  // build_action_set adds such a row
      for (const OpRow& row : program_.ops[op].rows) of_axis.insert(row.operands[i]);
      const std::vector<Placement> choices(of_axis.begin(), of_axis.end());
      const std::vector<std::vector<Placement>> of_axes(program_.mesh.axes().size(), choices);
      for (auto& needed : products_of(of_axes))
        needs_[static_cast<size_t>(in_[op][i])].insert(std::move(needed));
    }
  }
}

OpChoices NumberedOps::made(size_t op, const Numbers& from) {
  std::vector<std::vector<Placement>> on;
  for (size_t i = 0; i < from.size(); ++i) on.push_back(known(in_[op][i]).at(from[i]));
  OpChoices made{actions_of(program_, program_.ops[op], shapes_, on, Parity::kExact), {}};
  for (std::vector<size_t>& rows : products_of(allowed_rows(made.set)))
    made.choices.push_back(choice(op, made.set, from, std::move(rows)));
  drop_needless(op, made.choices);
  return made;
}

/// Returns the feasible rows of each mesh axis that need allowed moves only.
std::vector<std::vector<size_t>> NumberedOps::allowed_rows(const ActionSet& set) const {
  std::vector<std::vector<size_t>> rows(set.mesh.axes().size());
  for (size_t a = 0; a < rows.size(); ++a) {
    for (size_t row = 0; row < set.rows.size(); ++row) {
      bool is_allowed = is_feasible(set, set.rows[row], a);
      for (size_t i = 0; i < set.operands.size() && is_allowed; ++i) {
        const Placement& needed = set.rows[row].operands[i];
        is_allowed = allowed_.contains(move_between(set.operands[i].on[a], needed));
      }
      if (is_allowed) rows[a].push_back(row);
    }
  }
  return rows;
}

OpChoice NumberedOps::choice(size_t op, const ActionSet& set, const Numbers& from,
                             std::vector<size_t> rows) {
  OpChoice choice;
  for (const size_t row : rows) choice.action.results.push_back(set.rows[row].result);
  for (size_t i = 0; i < from.size(); ++i) {
    const int value = in_[op][i];
    std::vector<Placement> needed;
    for (const size_t row : rows) needed.push_back(set.rows[row].operands[i]);
    choice.taken.push_back(number(value, needed));
    choice.action.bytes += *price(value, set.operands[i].on, needed);
  }
  for (const int value : out_[op]) choice.results.push_back(number(value, choice.action.results));
  choice.action.rows = std::move(rows);
  return choice;
}

/// True if `one` costs no more than `other` and gives for free what `other` leaves.
bool NumberedOps::is_as_good(size_t op, const OpChoice& one, const OpChoice& other) const {
  if (one.action.bytes > other.action.bytes) return false;
  for (size_t i = 0; i < one.results.size(); ++i) {
    if (!known(out_[op][i]).gives(one.results[i], other.results[i])) return false;
  }
  for (size_t i = 0; i < one.taken.size(); ++i) {
    if (!known(in_[op][i]).gives(one.taken[i], other.taken[i])) return false;
  }
  return true;
}

void NumberedOps::drop_needless(size_t op, std::vector<OpChoice>& choices) const {
  std::vector<OpChoice> kept;
  for (size_t i = 0; i < choices.size(); ++i) {
    bool is_needless = false;
    for (size_t j = 0; j < choices.size() && !is_needless; ++j) {
      if (i == j || !is_as_good(op, choices[j], choices[i])) continue;
      is_needless = j < i || !is_as_good(op, choices[i], choices[j]);
    }
    if (!is_needless) kept.push_back(choices[i]);
  }
  choices = std::move(kept);
}

}  // namespace shardtool::plan
