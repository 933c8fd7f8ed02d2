#include <utility>

#include "lib/api/proof/joined_report.h"
#include "lib/api/proof/verdict_folder.h"
#include "lib/api/transfer/joined_shares.h"
#include "lib/api/validate.h"
#include "lib/base/error.h"

namespace shardtool::api {

bool has_verdicts(const std::string& folder) {
  return !VerdictFolder(folder).ended().empty();
}

std::vector<int> missing_verdicts(const std::string& folder) {
  const auto ended = VerdictFolder(folder).ended();
  return missing_of(ended, shares_of_records(ended));
}

ValidateReport joined_verdict(const std::string& folder) {
  const VerdictFolder verdicts(folder);
  const auto ended = verdicts.ended();
  const int shares = shares_of_records(ended);
  check_ended(ended, shares, folder);
  VerdictRecord first = verdicts.read({0, shares});
  ValidateReport all = std::move(first.report);
  for (int number = 1; number < shares; ++number) {
    const VerdictRecord record = verdicts.read({number, shares});
    if (record.run != first.run) throw verdicts.other_run({number, shares});
    add_share(all, record.report);
  }
  judge_shares(all, first.require_coverage);
  all.share.reset();
  all.ran.clear();
  all.joined = shares;
  return all;
}

}  // namespace shardtool::api
