#include "lib/index/axis_map.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using index::AxisMap;
using index::Piece;
using reference::Indices;
using reference::indices;
using reference::kPadding;

namespace {

/// Checks I1 to I5 of axis_map.h.
bool invariants_hold(const AxisMap& map) {
  const auto pieces = map.pieces();
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& p = pieces[i];
    if (p.size <= 0) return false;                                         // I3
    if (p.local < 0 || p.local_end() > map.local_size()) return false;     // I5
    if (p.global < 0 || p.global_end() > map.global_size()) return false;  // I5
    for (size_t j = 0; j < i; ++j) {
      const Piece& before = pieces[j];
      if (before.local_end() > p.local) return false;                                      // I1
      if (before.global < p.global_end() && p.global < before.global_end()) return false;  // I2
    }
    if (i == 0) continue;
    const Piece& last = pieces[i - 1];
    if (last.local_end() == p.local && last.global_end() == p.global) return false;  // I4
  }
  return true;
}

Indices composed(const Indices& outer, const Indices& inner) {
  Indices out;
  for (const i64 i : inner) out.push_back(i == kPadding ? kPadding : outer[static_cast<size_t>(i)]);
  return out;
}

/// Three composable maps: a after b after c.
struct Chain {
  AxisMap a, b, c;
};
Chain chain() {
  std::array<i64, 4> sizes{};
  for (i64& size : sizes) size = *gen::between(0, 14);
  return {*gen::axis_map(sizes[1], sizes[0]), *gen::axis_map(sizes[2], sizes[1]),
          *gen::axis_map(sizes[3], sizes[2])};
}

/// True if pieces neither overlap nor leave their extents, element by element.
bool is_partial_injection(i64 local_size, i64 global_size, const std::vector<Piece>& pieces) {
  std::vector<i64> locals;
  std::vector<i64> globals;
  for (const Piece& p : pieces) {
    const bool inside = p.size >= 0 && p.local >= 0 && p.global >= 0 &&
                        p.local + p.size <= local_size && p.global + p.size <= global_size;
    if (!inside) return false;
    for (i64 i = 0; i < p.size; ++i) {
      locals.push_back(p.local + i);
      globals.push_back(p.global + i);
    }
  }
  const auto distinct = [](std::vector<i64>& values) {
    std::sort(values.begin(), values.end());
    return std::adjacent_find(values.begin(), values.end()) == values.end();
  };
  return distinct(locals) && distinct(globals);
}

}  // namespace

TEST_CASE("make refuses exactly the pieces that overlap or leave an extent") {
  CHECK(rc::check("make == the definition of a partial injection", [] {
    const i64 local_size = *gen::between(-1, 10);
    const i64 global_size = *gen::between(-1, 10);
    std::vector<Piece> pieces;
    const i64 count = *gen::between(0, 4);
    for (i64 i = 0; i < count; ++i) {
      pieces.push_back({*gen::between(-1, 9), *gen::between(-1, 9), *gen::between(-1, 4)});
    }
    const bool valid = local_size >= 0 && global_size >= 0 &&
                       is_partial_injection(local_size, global_size, pieces);
    RC_CLASSIFY(valid, "valid");
    const auto map = AxisMap::make(local_size, global_size, pieces);
    RC_ASSERT(map.has_value() == valid);
    if (map) RC_ASSERT(invariants_hold(*map));
  }));
}

TEST_CASE("make refuses pieces whose ends overflow, without overflowing") {
  constexpr i64 kMax = std::numeric_limits<i64>::max();
  CHECK_FALSE(AxisMap::make(kMax, kMax, {{1, 0, kMax}}));
  CHECK_FALSE(AxisMap::make(kMax, kMax, {{0, kMax, 1}}));
  CHECK_FALSE(AxisMap::make(10, 10, {{kMax, 0, 1}}));
  CHECK(AxisMap::make(kMax, kMax, {{0, 0, kMax}})->is_identity());
}

TEST_CASE("the constructor throws where make returns nothing") {
  CHECK_ERROR(kInternal, AxisMap(4, 4, {{0, 0, 3}, {2, 3, 1}}));
  CHECK_ERROR(kInternal, AxisMap::slice(10, {4, 11}));
  CHECK_ERROR(kInternal, AxisMap::slice(10, {5, 4}));
}

TEST_CASE("pieces are canonical: the same function is the same value") {
  CHECK(rc::check("a map rebuilt from single elements is equal", [] {
    const AxisMap map = *gen::axis_map();
    RC_ASSERT(invariants_hold(map));
    RC_ASSERT(reference::map_of(indices(map), map.global_size()) == map);
  }));
}

TEST_CASE("a map applied to an index is the piece that holds it") {
  CHECK(rc::check("operator() == pointwise", [] {
    const AxisMap map = *gen::axis_map();
    const Indices expected = indices(map);
    for (i64 local = 0; local < map.local_size(); ++local) {
      RC_ASSERT(map(local).value_or(kPadding) == expected[static_cast<size_t>(local)]);
    }
    const auto padding = std::count(expected.begin(), expected.end(), kPadding);
    RC_ASSERT(map.image_size() == map.local_size() - padding);
  }));
}

TEST_CASE("only the map of every index onto itself is the identity") {
  CHECK(rc::check("is_identity == pointwise", [] {
    const i64 n = *gen::between(0, 8);
    const AxisMap map = *gen::axis_map(n, *rc::gen::element(n, n + 1));
    const bool same = map == AxisMap::identity(n);
    RC_ASSERT(map.is_identity() == same);
    RC_ASSERT(AxisMap::identity(n).is_identity());
  }));
}

TEST_CASE("inverse swaps the roles of local and global") {
  CHECK(rc::check("inverse(a)(g) = l where a(l) = g", [] {
    const AxisMap a = *gen::axis_map();
    const AxisMap b = inverse(a);
    RC_ASSERT(invariants_hold(b));
    RC_ASSERT(b.local_size() == a.global_size());
    RC_ASSERT(b.global_size() == a.local_size());
    Indices expected(static_cast<size_t>(a.global_size()), kPadding);
    const Indices forward = indices(a);
    for (size_t local = 0; local < forward.size(); ++local) {
      if (forward[local] != kPadding)
        expected[static_cast<size_t>(forward[local])] = static_cast<i64>(local);
    }
    RC_ASSERT(indices(b) == expected);
    RC_ASSERT(inverse(b) == a);
  }));
}

TEST_CASE("there and back again is the identity on the domain") {
  CHECK(rc::check("compose(inverse(a), a)(l) = l where a has an image", [] {
    const AxisMap a = *gen::axis_map();
    const AxisMap there_and_back = compose(inverse(a), a);
    for (i64 local = 0; local < a.local_size(); ++local) {
      RC_ASSERT(there_and_back(local) == (a(local) ? std::optional(local) : std::nullopt));
    }
  }));
}

TEST_CASE("compose is pointwise, associative, and reversed by inverse") {
  CHECK(rc::check("compose(outer, inner)(l) = outer(inner(l))", [] {
    const auto [a, b, c] = chain();
    const AxisMap ab = compose(a, b);
    RC_ASSERT(invariants_hold(ab));
    RC_ASSERT(ab.local_size() == b.local_size());
    RC_ASSERT(ab.global_size() == a.global_size());
    RC_ASSERT(indices(ab) == composed(indices(a), indices(b)));
    RC_ASSERT(compose(ab, c) == compose(a, compose(b, c)));
    RC_ASSERT(inverse(ab) == compose(inverse(b), inverse(a)));
    RC_ASSERT(compose(a, AxisMap::identity(a.local_size())) == a);
    RC_ASSERT(compose(AxisMap::identity(a.global_size()), a) == a);
  }));
}

TEST_CASE("compose refuses maps that do not meet") {
  CHECK_ERROR(kInternal, compose(AxisMap::identity(3), AxisMap::identity(4)));
}

TEST_CASE("concat puts sections side by side on both sides") {
  CHECK(rc::check("concat is pointwise", [] {
    std::vector<AxisMap> sections;
    const i64 count = *gen::between(0, 4);
    for (i64 i = 0; i < count; ++i) sections.push_back(*gen::axis_map());
    Indices expected;
    i64 begin = 0;
    for (const AxisMap& section : sections) {
      for (const i64 i : indices(section)) expected.push_back(i == kPadding ? kPadding : begin + i);
      begin += section.global_size();
    }
    const AxisMap joined = index::concat(sections);
    RC_ASSERT(invariants_hold(joined));
    RC_ASSERT(joined.global_size() == begin);
    RC_ASSERT(indices(joined) == expected);
  }));
}

TEST_CASE("scale turns one index into k consecutive ones") {
  CHECK(rc::check("scale(a, k)(l * k + j) = a(l) * k + j; scale(compose) = compose(scale)", [] {
    const auto [a, b, c] = chain();
    const i64 k = *gen::between(1, 5);
    const AxisMap wide = index::scale(a, k);
    RC_ASSERT(invariants_hold(wide));
    RC_ASSERT(wide.local_size() == a.local_size() * k);
    RC_ASSERT(wide.global_size() == a.global_size() * k);
    for (i64 local = 0; local < a.local_size(); ++local) {
      for (i64 j = 0; j < k; ++j) {
        const auto at = a(local);
        RC_ASSERT(wide(local * k + j) == (at ? std::optional(*at * k + j) : std::nullopt));
      }
    }
    RC_ASSERT(index::scale(compose(a, b), k) == compose(wide, index::scale(b, k)));
  }));
}

TEST_CASE("product folds two axes into one, the outer one slowest") {
  CHECK(rc::check("pointwise, associative, and scale where the inner one is whole", [] {
    const AxisMap a = *gen::axis_map(*gen::between(0, 5), *gen::between(0, 5));
    const AxisMap b = *gen::axis_map(*gen::between(0, 5), *gen::between(0, 5));
    const AxisMap folded = product(a, b);
    RC_ASSERT(invariants_hold(folded));
    Indices expected;
    for (const i64 o : indices(a)) {
      for (const i64 i : indices(b)) {
        const bool has_image = o != kPadding && i != kPadding;
        expected.push_back(has_image ? o * b.global_size() + i : kPadding);
      }
    }
    RC_ASSERT(indices(folded) == expected);
    const i64 k = *gen::between(1, 4);
    RC_ASSERT(product(a, AxisMap::identity(k)) == scale(a, k));
    const AxisMap c = *gen::axis_map(*gen::between(0, 3), *gen::between(0, 3));
    RC_ASSERT(product(product(a, b), c) == product(a, product(b, c)));
  }));
}

TEST_CASE("scale and concat refuse axes beyond 2^63") {
  const AxisMap half = AxisMap::identity(std::numeric_limits<i64>::max() / 2 + 1);
  CHECK_ERROR(kLimit, index::scale(half, 2));
  CHECK_ERROR(kLimit, index::concat(std::array{half, half}));
}

TEST_CASE("coarsen undoes scale") {
  CHECK(rc::check("coarsen(scale(a, b), b) = a", [] {
    const AxisMap a = *gen::axis_map();
    const i64 b = *gen::between(1, 5);
    RC_ASSERT(index::coarsen(index::scale(a, b), b) == a);
  }));
}

TEST_CASE("coarsen refuses exactly the maps that cut a block") {
  CHECK(rc::check("coarsen(a, b) exists iff every block moves whole to a block", [] {
    const i64 b = *gen::between(1, 4);
    // Some maps are aligned except at the end of the axis, so that both answers are frequent.
    const bool aligned = *rc::gen::element(0, 1, 2) == 0;
    AxisMap a = *gen::axis_map();
    if (aligned) {
      const AxisMap wide = index::scale(a, b);
      const i64 short_by = *gen::between(0, b - 1);
      const i64 n = std::max<i64>(wide.global_size() - short_by, 0);
      a = compose(AxisMap(wide.global_size(), n, {{0, 0, n}}), wide);
      if (*rc::gen::arbitrary<bool>()) {  // close the gaps: the partial block may be anywhere
        Indices held = indices(a);
        std::erase(held, kPadding);
        a = reference::map_of(held, n);
      }
    }
    // The definition: local block k is one whole global block with the same positions; a final
    // partial block of the global axis counts as whole.
    const Indices at = indices(a);
    const i64 blocks = ceil_div(a.local_size(), b);
    Indices coarse(static_cast<size_t>(blocks), kPadding);
    bool whole_blocks = true;
    for (i64 k = 0; k < blocks; ++k) {
      const i64 first = at[static_cast<size_t>(k * b)];
      if (first != kPadding) coarse[static_cast<size_t>(k)] = first / b;
      for (i64 j = 0; j < b; ++j) {
        const i64 local = k * b + j;
        const i64 found = local < a.local_size() ? at[static_cast<size_t>(local)] : kPadding;
        const bool expects = first != kPadding && first / b * b + j < a.global_size();
        whole_blocks = whole_blocks && found == (expects ? first / b * b + j : kPadding);
      }
    }
    RC_CLASSIFY(whole_blocks, "coarsens");
    const auto result = index::coarsen(a, b);
    RC_ASSERT(result.has_value() == whole_blocks);
    RC_ASSERT(first_cut_inside_block(a, b).has_value() != whole_blocks);
    if (result) {
      RC_ASSERT(invariants_hold(*result));
      RC_ASSERT(indices(*result) == coarse);
      RC_ASSERT(result->global_size() == ceil_div(a.global_size(), b));
    }
  }));
}

TEST_CASE("the first cut inside a block is named by its global index") {
  const auto cut = [](i64 begin, i64 end) {
    return first_cut_inside_block(AxisMap::slice(768, {begin, end}), 128);
  };
  CHECK(cut(0, 288) == 288);
  CHECK(cut(288, 576) == 288);
  CHECK(cut(256, 576) == 576);
  CHECK(cut(256, 512) == std::nullopt);
  CHECK(first_cut_inside_block(AxisMap::slice(1100, {1024, 1100}), 128) == std::nullopt);
}

TEST_CASE("touched is every block in which there is an index, once, as they are reached") {
  CHECK(rc::check("blocks of the indices, repeats left out", [] {
    const i64 n = *gen::between(1, 16);
    const AxisMap sparse = *gen::axis_map(n, *gen::between(n, 24));
    const i64 block = *gen::between(1, 6);
    Indices images;
    for (const i64 g : indices(sparse)) {
      if (g != kPadding) images.push_back(g);
    }
    const AxisMap map = reference::map_of(images, sparse.global_size());
    Indices expected;
    for (const i64 g : images) {
      if (std::find(expected.begin(), expected.end(), g / block) == expected.end())
        expected.push_back(g / block);
    }
    const AxisMap blocks = touched(map, block);
    RC_ASSERT(invariants_hold(blocks));
    RC_ASSERT(indices(blocks) == expected);
    RC_ASSERT(blocks.global_size() == (map.global_size() + block - 1) / block);
    if (const auto coarse = coarsen(map, block)) RC_ASSERT(blocks == *coarse);
  }));
}

TEST_CASE("every_kth: the maps of all offsets are the map, each index in one of them") {
  CHECK(rc::check("pointwise", [] {
    const AxisMap map = *gen::axis_map();
    const i64 k = *gen::between(1, 5);
    const Indices all = indices(map);
    for (i64 offset = 0; offset < k; ++offset) {
      const AxisMap part = every_kth(map, k, offset);
      RC_ASSERT(invariants_hold(part));
      Indices expected;
      for (const i64 g : all)
        expected.push_back(g != kPadding && g % k == offset ? g / k : kPadding);
      RC_ASSERT(indices(part) == expected);
    }
  }));
}

TEST_CASE("pad adds local indices without an image") {
  CHECK(rc::check("pad keeps the pieces", [] {
    const AxisMap a = *gen::axis_map();
    const i64 more = *gen::between(0, 5);
    Indices expected = indices(a);
    expected.resize(expected.size() + static_cast<size_t>(more), kPadding);
    RC_ASSERT(indices(index::pad(a, a.local_size() + more)) == expected);
    RC_ASSERT(index::pad(a, a.local_size() + more).image_size() == a.image_size());
  }));
}

TEST_CASE("a map prints as the global intervals in local order") {
  CHECK(to_string(AxisMap()) == "nothing");
  CHECK(to_string(AxisMap(0, 5, {})) == "nothing");
  CHECK(to_string(AxisMap(3, 5, {})) == "pad 3");
  CHECK(to_string(AxisMap::identity(4)) == "[0, 4)");
  CHECK(to_string(AxisMap(386, 1920, {{0, 0, 192}, {192, 640, 192}})) ==
        "[0, 192) [640, 832) pad 2");
  CHECK(to_string(AxisMap(6, 10, {{1, 8, 2}, {4, 2, 1}})) == "pad 1 [8, 10) pad 1 [2, 3) pad 1");
}
