#include "cli/print/color.h"

#include <doctest/doctest.h>

#include <map>

namespace shardtool::cli {
namespace {

Environment environment(std::map<std::string, std::string> values) {
  return [values](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST_CASE("the first of flag, FORCE_COLOR, NO_COLOR, TERM and terminal that speaks decides") {
  const auto none = environment({});
  CHECK(use_color("", none, true));
  CHECK_FALSE(use_color("", none, false));
  CHECK_FALSE(use_color("", environment({{"TERM", "dumb"}}), true));
  CHECK(use_color("", environment({{"TERM", "xterm"}}), true));
  CHECK_FALSE(use_color("", environment({{"NO_COLOR", "1"}}), true));
  CHECK_FALSE(use_color("auto", environment({{"NO_COLOR", "1"}}), true));
  CHECK(use_color("", environment({{"NO_COLOR", "1"}, {"FORCE_COLOR", "1"}}), false));
  CHECK(use_color("", environment({{"TERM", "dumb"}, {"CLICOLOR_FORCE", "1"}}), false));
  CHECK_FALSE(use_color("never", environment({{"FORCE_COLOR", "1"}}), true));
  CHECK(use_color("always", environment({{"NO_COLOR", "1"}}), false));
}

TEST_CASE("a style wraps text only where colours are on, and never nothing") {
  CHECK(Style(false).red("x") == "x");
  CHECK(Style(true).red("x") == "\x1b[1;31mx\x1b[0m");
  CHECK(Style(true).red("").empty());
}

}  // namespace
}  // namespace shardtool::cli
