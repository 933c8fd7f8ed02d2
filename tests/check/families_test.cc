// Models of every family that the transformers library writes are sound, whatever config.json calls
// their sizes: a check that cries wolf is switched off.
#include <doctest/doctest.h>

#include "shardtool/check/model.h"
#include "tests/presets/fixture.h"

namespace shardtool::test {
namespace {

TEST_CASE("models of every family contradict neither their config.json nor themselves") {
  REQUIRE(mapping::fixtures().size() > 50);
  for (const mapping::Fixture& fixture : mapping::fixtures()) {
    CAPTURE(fixture.family);
    check::Findings findings{check::Profile("")};
    const check::Model model{fixture.tensors, fixture.config, "config.json"};
    check::check_model(model, findings);
    check::check_quantised(model, findings);
    for (const check::Finding& finding : findings.all()) {
      if (finding.severity < check::Severity::kWarning) continue;
      FAIL_CHECK(check::rule_info(finding.rule).id << " " << finding.tensor << ": "
                                                   << finding.message << "; " << finding.found
                                                   << " | " << finding.expected);
    }
  }
}

}  // namespace
}  // namespace shardtool::test
