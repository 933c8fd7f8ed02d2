#include "lib/api/proof/golden_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/api/proof/golden_file.h"
#include "lib/engine/golden.h"

namespace shardtool::api {
namespace {

using engine::Outcome;
using engine::TierKind;

/// Allowed difference between two implementations in f32, relative to the root mean square.
constexpr double kGoldenTolerance = 1e-4;

}  // namespace

void add_golden_tier(const std::string& path, const engine::Side& whole, ValidateReport& report) {
  ValidateTier tier{TierKind::kGolden, Outcome::kPass};
  const engine::Golden golden = load_golden(path);
  for (const auto& found : engine::compare_with_golden(whole, golden)) {
    tier.checked += found.checked;
    tier.worst = std::max(tier.worst, found.worst);
    if (found.worst <= kGoldenTolerance) continue;
    ++tier.mismatches;
    if (tier.outcome == Outcome::kPass) {
      report.notes.push_back(
          fmt::format("{} is {:.1e} of its RMS from the golden one: the graph "
                      "computes something else, or with other options",
                      found.value, found.worst));
    }
    tier.outcome = Outcome::kFail;
  }
  report.tiers.push_back(std::move(tier));
}

}  // namespace shardtool::api
