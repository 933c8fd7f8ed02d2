#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/plan/placement/program_values.h"

/// Choices of the ops of a program, in which values and the placements of each value are numbers.
namespace shardtool::plan {

using Numbers = std::vector<int>;

/// Numbers of the placements of one value.
class KnownPlacements {
 public:
  /// Tells if a placement gives another one for free, and is as cheap to move anywhere.
  using Gives = std::function<bool(const std::vector<Placement>&, const std::vector<Placement>&)>;

  /// Returns the placement's number; the next one if it is new.
  int number(const std::vector<Placement>& on, const Gives& gives);
  int size() const { return static_cast<int>(placements_.size()); }
  const std::vector<Placement>& at(int number) const {
    return placements_[static_cast<size_t>(number)];
  }
  /// True if the first placement gives the second one for free, and is as cheap to move anywhere.
  bool gives(int whole, int part) const {
    return gives_[static_cast<size_t>(whole)][static_cast<size_t>(part)];
  }

 private:
  std::map<std::vector<Placement>, int> numbers_;
  std::vector<std::vector<Placement>> placements_;
  std::vector<std::vector<bool>> gives_;
};

/// An action with the numbers of the placements that it leaves.
struct OpChoice {
  Action action;
  Numbers taken;    ///< of the operands
  Numbers results;  ///< of the results
};

/// The choices of an op for operands in given placements, without those that are no better than
/// another one: it gives all of their placements for at most their bytes.
struct OpChoices {
  ActionSet set;
  std::vector<OpChoice> choices;
};

/// The choices of all ops with allowed moves only. Computes each once.
class NumberedOps {
 public:
  /// The program must outlive it. Throws kInternal for violations of P1.
  NumberedOps(const Program& program, const AllowedMoves& allowed);

  const Program& program() const { return program_; }
  /// Values that op number `op`, a later op or a later program reads, ascending.
  const Numbers& live(size_t op) const { return live_[op]; }
  const Numbers& in(size_t op) const { return in_[op]; }
  const Numbers& out(size_t op) const { return out_[op]; }
  int value(const std::string& name) const { return values_.at(name); }
  const KnownPlacements& known(int value) const { return known_[static_cast<size_t>(value)]; }
  /// Returns the number of a value's placement.
  int number(int value, const std::vector<Placement>& on);
  /// Returns the choices of an op, for the numbers of its operands' placements.
  const OpChoices& choices(size_t op, const Numbers& from);

 private:
  Numbers numbers_of(const std::vector<std::string>& names) const;
  void find_needs();
  bool is_as_cheap(int value, const std::vector<Placement>& whole,
                   const std::vector<Placement>& part);
  std::optional<i64> price(int value, const std::vector<Placement>& from,
                           const std::vector<Placement>& to);
  void find_live();
  OpChoices made(size_t op, const Numbers& from);
  std::vector<std::vector<size_t>> allowed_rows(const ActionSet& set) const;
  OpChoice choice(size_t op, const ActionSet& set, const Numbers& from, std::vector<size_t> rows);
  bool is_as_good(size_t op, const OpChoice& one, const OpChoice& other) const;
  void drop_needless(size_t op, std::vector<OpChoice>& choices) const;

  const Program& program_;
  AllowedMoves allowed_;
  ValueShapes shapes_;
  std::map<std::string, int> values_;
  std::vector<Numbers> in_, out_, live_;                 ///< by op
  std::vector<KnownPlacements> known_;                   ///< by value
  std::vector<const Operand*> operands_;                 ///< by value, with its shape
  std::vector<std::set<std::vector<Placement>>> needs_;  ///< by value, of the ops that read it
  std::map<std::pair<size_t, Numbers>, OpChoices> choices_;
  /// By value, and placements from and to; nullopt: not allowed.
  std::map<std::tuple<int, std::vector<Placement>, std::vector<Placement>>, std::optional<i64>>
      prices_;
};

}  // namespace shardtool::plan
