#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "lib/base/error.h"
#include "lib/ops/sections/section_list.h"
#include "tests/support/throws.h"

namespace shardtool::ops {
namespace {

using Order = Split::Order;
using index::AxisMap;

/// Global index in the fused axis of element g of section i.
i64 fused_index(Order order, const std::vector<i64>& sizes, size_t i, i64 g) {
  i64 unit = 0;
  i64 before = 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    unit += sizes[k];
    before += k < i ? sizes[k] : 0;
  }
  if (order == Order::kConcat) return before + g;
  if (order == Order::kPerHead) return g / sizes[i] * unit + before + g % sizes[i];
  return g * std::ssize(sizes) + static_cast<i64>(i);
}

TEST_CASE("a section has, at every place, the element of the fused axis that belongs there") {
  CHECK(rc::check("sections", [] {
    const auto order = *rc::gen::element(Order::kConcat, Order::kPerHead, Order::kInterleaved);
    const i64 sections = *rc::gen::inRange<i64>(1, 4);
    const i64 equal = *rc::gen::inRange<i64>(1, 5);
    std::vector<i64> sizes;
    i64 unit = 0;
    for (i64 i = 0; i < sections; ++i) {
      sizes.push_back(order == Order::kInterleaved ? equal : *rc::gen::inRange<i64>(1, 5));
      unit += sizes.back();
    }
    const i64 units = order == Order::kPerHead ? *rc::gen::inRange<i64>(1, 5) : 1;
    const i64 n = unit * units;
    // A device has whole units of heads, or any range.
    const i64 grain = order == Order::kPerHead ? unit : 1;
    const i64 begin = *rc::gen::inRange<i64>(0, n / grain + 1) * grain;
    const i64 end = begin + *rc::gen::inRange<i64>(0, (n - begin) / grain + 1) * grain;
    const AxisMap fused = AxisMap::slice(n, {begin, end});
    const auto found = sections_of(order, fused, sizes, "qkv");
    RC_ASSERT(std::ssize(found) == sections);
    i64 elements = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const Section& section = found[i];
      RC_ASSERT(std::ssize(section.from) == section.features.local_size());
      RC_ASSERT(section.features.image_size() == section.features.local_size());
      elements += section.features.local_size();
      for (i64 l = 0; l < section.features.local_size(); ++l) {
        const i64 expected = fused_index(order, sizes, i, *section.features(l));
        RC_ASSERT(fused(section.from[static_cast<size_t>(l)]) == expected);
      }
    }
    RC_ASSERT(elements == end - begin);
  }));
}

TEST_CASE("a cut inside a head is refused by name") {
  const AxisMap half = AxisMap::slice(24, {0, 9});
  CHECK_THROWS_WITH_AS(sections_of(Order::kPerHead, half, {2, 2, 2}, "qkv"),
                       doctest::Contains("'qkv'"), Error);
}

}  // namespace
}  // namespace shardtool::ops
