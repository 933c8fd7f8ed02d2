#include "lib/index/section.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <vector>

namespace shardtool::index {
namespace {

TEST_CASE("sections of a concatenation are what was put side by side") {
  CHECK(rc::check("section of concat", [] {
    std::vector<AxisMap> sections;
    const i64 count = *rc::gen::inRange<i64>(1, 5);
    for (i64 i = 0; i < count; ++i) {
      const i64 size = *rc::gen::inRange<i64>(0, 9);
      const i64 begin = *rc::gen::inRange<i64>(0, size + 1);
      const i64 end = *rc::gen::inRange<i64>(begin, size + 1);
      sections.push_back(AxisMap::slice(size, {begin, end}));
    }
    const AxisMap fused = concat(sections);
    i64 begin = 0;
    for (const AxisMap& section : sections) {
      RC_ASSERT(section_of(fused, begin, section.global_size()) == section);
      begin += section.global_size();
    }
  }));
}

TEST_CASE("what lies outside of the section and what is padding is left out, the order stays") {
  // Globals 6, 7, padding, 2, 3, 4.
  const AxisMap map(6, 10, {{0, 6, 2}, {3, 2, 3}});
  CHECK(section_of(map, 3, 4) == AxisMap(3, 4, {{0, 3, 1}, {1, 0, 2}}));
  CHECK(section_of(map, 8, 2) == AxisMap(0, 2, {}));
}

}  // namespace
}  // namespace shardtool::index
