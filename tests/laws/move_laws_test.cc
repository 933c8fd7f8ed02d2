// Laws of moving a tensor between two layouts, in bytes: merge(split(x)) = x, reshard = split after
// merge. A reference copies element by element; the library copies boxes with StridedCopy.
#include <doctest/doctest.h>

#include "lib/index/join.h"
#include "lib/index/strided_copy.h"
#include "tests/support/generators.h"

using namespace shardtool;
using index::HolderJoin;
using index::HolderSet;
using layout::Layout;
using reference::Bytes;

namespace {

/// Data of every holder.
using Shards = std::vector<Bytes>;

Shards place_all(const HolderSet& holders, const Bytes& whole, int bits) {
  Shards shards;
  for (int h = 0; h < holders.size(); ++h) {
    shards.push_back(reference::place(holders.region(h), whole, bits));
  }
  return shards;
}

Shards empty_shards(const HolderSet& holders, int bits) {
  Shards shards;
  for (int h = 0; h < holders.size(); ++h) {
    shards.push_back(reference::zeros(*element_count(local_shape(holders.region(h))), bits));
  }
  return shards;
}

void copy_by_element(const std::vector<i64>& sizes, index::BoxSide from, index::BoxSide to,
                     const Bytes& src, Bytes& dst, int bits) {
  for (auto there : reference::tuples(sizes)) {
    auto here = there;
    for (size_t a = 0; a < sizes.size(); ++a) {
      here[a] += from.begin[a];
      there[a] += to.begin[a];
    }
    reference::copy_element(src, reference::row_major(here, from.extents), dst,
                            reference::row_major(there, to.extents), bits);
  }
}

/// Moves shards by joining and lowering. Moves boxes of partial bytes, which the library leaves to
/// its caller, element by element.
Shards move(const HolderSet& sources, const HolderSet& destinations, const Shards& src, int bits) {
  Shards dst = empty_shards(destinations, bits);
  const HolderJoin join(sources, destinations);
  join.for_each_box([&](HolderJoin::Box box) {
    const auto sizes = index::sizes(box);
    const HolderJoin::Located from = join.source_of(box);
    RC_ASSERT(!from.holders.empty());
    const int source = from.holders.front();
    const Shape src_extents = local_shape(sources.region(source));
    for (const HolderJoin::Located& to : join.destinations_of(box)) {
      for (const int holder : to.holders) {
        const Shape dst_extents = local_shape(destinations.region(holder));
        const index::BoxSide here{from.local, src_extents};
        const index::BoxSide there{to.local, dst_extents};
        const Bytes& data = src[static_cast<size_t>(source)];
        Bytes& shard = dst[static_cast<size_t>(holder)];
        if (const auto copy = index::lower(sizes, here, there, bits)) {
          reference::run(*copy, data, shard);
        } else {
          RC_ASSERT(bits % 8 != 0);
          copy_by_element(sizes, here, there, data, shard, bits);
        }
      }
    }
  });
  return dst;
}

}  // namespace

TEST_CASE("split, merge and reshard are the reference's, byte for byte") {
  CHECK(rc::check("move == element by element, for any two layouts", [] {
    const Shape shape = *gen::shape();
    const int bits = *rc::gen::element(4, 6, 8, 16, 32, 64);
    const Layout a = *gen::layout(shape);
    const Layout b = *gen::layout(shape);
    RC_CLASSIFY(a.is_sharded() && b.is_sharded(), "both cut");
    const HolderSet whole = HolderSet::whole(shape);
    const Bytes x = reference::numbered(*element_count(shape), bits);

    const Shards in_a = move(whole, a.holders(), {x}, bits);
    RC_ASSERT(in_a == place_all(a.holders(), x, bits));
    RC_ASSERT(move(a.holders(), whole, in_a, bits).front() == x);
    RC_ASSERT(move(a.holders(), b.holders(), in_a, bits) == place_all(b.holders(), x, bits));
  }));
}

TEST_CASE("a layout moved to itself stays where it is") {
  CHECK(rc::check("every box is at one place on both sides", [] {
    const Layout a = *gen::layout(*gen::shape());
    const HolderJoin join(a.holders(), a.holders());
    join.for_each_box([&](HolderJoin::Box box) {
      for (const HolderJoin::Located& wanted : join.destinations_of(box)) {
        const auto region = a.holders().region(wanted.holders.front());
        for (size_t axis = 0; axis < box.size(); ++axis) {
          RC_ASSERT(region[axis](wanted.local[axis]) == box[axis]->begin);
        }
      }
    });
  }));
}
