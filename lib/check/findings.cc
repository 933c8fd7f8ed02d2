#include "lib/check/findings.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shardtool::check {

Findings::Findings(Profile profile) : profile_(std::move(profile)), counts_(rule_table().size()) {}

Findings::Muted::Muted(Findings& findings, std::span<const CheckRule> rules)
    : findings_(findings), before_(findings.profile_) {
  for (const CheckRule rule : rules) findings_.profile_.ignore(rule);
}

void Findings::add(Finding finding) {
  finding.severity = profile_.severity(finding.rule);
  if (finding.severity == Severity::kOff) return;
  if (++counts_[static_cast<size_t>(finding.rule)] > kKeptPerRule) return;
  kept_.push_back(std::move(finding));
}

std::vector<RuleCount> Findings::counts() const {
  std::vector<RuleCount> broken;
  for (const RuleInfo& row : rule_table()) {
    const i64 count = counts_[static_cast<size_t>(row.rule)];
    if (count > 0) broken.push_back({row.rule, profile_.severity(row.rule), count});
  }
  return broken;
}

void Findings::sort() {
  const auto key = [](const Finding& f) {
    return std::tie(f.rule, f.file, f.tensor, f.line, f.column, f.rank, f.axis, f.message, f.found);
  };
  std::sort(kept_.begin(), kept_.end(),
            [&](const Finding& a, const Finding& b) { return key(a) < key(b); });
}

}  // namespace shardtool::check
