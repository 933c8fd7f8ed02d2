#include "shardtool/check/findings.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shardtool::check {

Findings::Findings(Profile profile) : profile_(std::move(profile)), counts_(rule_table().size()) {}

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
  std::stable_sort(kept_.begin(), kept_.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.rule, a.file, a.tensor, a.line, a.rank) <
           std::tie(b.rule, b.file, b.tensor, b.line, b.rank);
  });
}

}  // namespace shardtool::check
