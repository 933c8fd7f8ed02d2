#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>

#include "lib/base/text.h"
#include "lib/plan/placement/joint_plans.h"

namespace shardtool::plan {

TEST_CASE("the manual of plan --ops says how many states a search of the whole pass may have") {
  const std::ifstream file(SHARDTOOL_SOURCE_DIR "/cli/man/shardtool-ops.5.scd");
  std::ostringstream page;
  page << file.rdbuf();
  const std::string limit =
      fmt::format("refused above {} states", format_count(static_cast<i64>(kMostStates)));
  CAPTURE(limit);
  CHECK(page.str().find(limit) != std::string::npos);
}

}  // namespace shardtool::plan
