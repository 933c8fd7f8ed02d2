#pragma once

#include <string>
#include <vector>

#include "lib/check/finding.h"
#include "lib/check/profile.h"

namespace shardtool::check {

/// How often a rule was broken; of many findings only the first are kept.
struct RuleCount {
  Rule rule = Rule::kFileUnreadable;
  Severity severity = Severity::kOff;
  i64 count = 0;
};

/// Takes findings, gives them their severity, and keeps at most kKeptPerRule of a rule: a
/// checkpoint with 94,000 bad tensors stays readable and small.
class Findings {
 public:
  static constexpr i64 kKeptPerRule = 1000;

  explicit Findings(Profile profile);

  /// Whether findings of a rule are wanted at all, so that costly ones need not be made.
  bool wants(Rule rule) const { return profile_.severity(rule) != Severity::kOff; }
  void add(Finding finding);

  /// Those kept, in the order in which they came until `sort`.
  const std::vector<Finding>& all() const { return kept_; }
  /// The rules that were broken, in the order of the table.
  std::vector<RuleCount> counts() const;
  /// By rule, file, tensor, line and rank: the same whatever the threads did.
  void sort();

 private:
  Profile profile_;
  std::vector<Finding> kept_;
  std::vector<i64> counts_;  ///< by rule
};

}  // namespace shardtool::check
