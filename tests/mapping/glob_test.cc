#include "lib/mapping/document/glob.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <set>

#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

TEST_CASE("a glob matches the name that its own wildcards fill") {
  CHECK(rc::check("fill, then match", [] {
    const auto layer = std::to_string(*rc::gen::inRange<i64>(0, 1'000'000));
    const auto part =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("abc_1-$(+")));
    const auto any = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab.\n\\[")));
    const Glob glob("m+[x].<layer>.*.**.{w,}end");
    const std::string choice = *rc::gen::element<std::string>("w", "");
    RC_ASSERT(
        glob_filter(glob.text())(glob.fill(std::vector<std::string>{layer, part, any, choice})));
  }));
}

TEST_CASE("a star stays inside one dotted part and two stars do not") {
  CHECK(glob_filter("a.*.c")("a.b.c"));
  CHECK(glob_filter("a.*.c")("a..c"));
  CHECK_FALSE(glob_filter("a.*.c")("a.b.b.c"));
  CHECK(glob_filter("a.**.c")("a.b.b.c"));
  CHECK_FALSE(glob_filter("a.**.c")("a.c"));
  CHECK(glob_filter("**")(""));
}

TEST_CASE("a glob means whole names, and its dots mean dots") {
  CHECK_FALSE(glob_filter("a.b")("a.bc"));
  CHECK_FALSE(glob_filter("a.b")("xa.b"));
  CHECK_FALSE(glob_filter("a.b")("axb"));
  CHECK(glob_filter("{transformer.,}wte.weight")("wte.weight"));
  CHECK(glob_filter("{transformer.,}wte.weight")("transformer.wte.weight"));
}

TEST_CASE("a number is decimal digits, at most eighteen of them") {
  const auto matches = glob_filter("l.<n>.w");
  CHECK(matches("l.0.w"));
  CHECK(matches("l.999999999999999999.w"));
  CHECK_FALSE(matches("l.1000000000000000000.w"));
  CHECK_FALSE(matches("l..w"));
  CHECK_FALSE(matches("l.-1.w"));
  CHECK_FALSE(matches("l.x.w"));
}

TEST_CASE("what is no glob is refused with the reason") {
  for (const std::string text :
       {"{a", "a}", "{a,{b}}", "{a*}", "<n", "n>", "<>", "<1n>", "<a-b>", "<n>.<n>"}) {
    CAPTURE(text);
    CHECK_ERROR(kMappingSchema, Glob(text));
  }
}

}  // namespace
}  // namespace shardtool::mapping
