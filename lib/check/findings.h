#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/check/finding.h"
#include "lib/check/profile.h"

namespace shardtool::check {

/// Number of findings of a rule; only the first ones are kept.
struct RuleCount {
  CheckRule rule = CheckRule::kFileUnreadable;
  Severity severity = Severity::kOff;
  i64 count = 0;
};

/// Collects findings, sets their severity, and keeps at most kKeptPerRule of a rule: the result for
/// a checkpoint with 94,000 bad tensors stays readable and small.
class Findings {
 public:
  static constexpr i64 kKeptPerRule = 1000;

  explicit Findings(Profile profile);

  /// True if findings of a rule are wanted, so that costly checks can be skipped.
  bool wants(CheckRule rule) const { return profile_.severity(rule) != Severity::kOff; }
  void add(Finding finding);

  /// Turns rules off for a scope.
  class Muted {
   public:
    Muted(Findings& findings, std::span<const CheckRule> rules);
    ~Muted() { findings_.profile_ = std::move(before_); }
    Muted(const Muted&) = delete;
    Muted& operator=(const Muted&) = delete;

   private:
    Findings& findings_;
    Profile before_;
  };

  /// Kept findings, in order of arrival until `sort`.
  const std::vector<Finding>& all() const { return kept_; }
  /// Violated rules, in table order.
  std::vector<RuleCount> counts() const;
  /// Sorts by rule, file, tensor, line and rank: the same order for any thread timing.
  void sort();

 private:
  Profile profile_;
  std::vector<Finding> kept_;
  std::vector<i64> counts_;  ///< by rule
};

}  // namespace shardtool::check
