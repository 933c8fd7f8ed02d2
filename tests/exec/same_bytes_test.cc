#include "lib/exec/chunks/same_bytes.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>

#include "tests/support/generators.h"

namespace shardtool::exec {
namespace {

std::shared_ptr<const index::HolderSet> rows_of(const Shape& shape, i64 parts) {
  auto holders = std::make_shared<index::HolderSet>(shape);
  for (i64 p = 0; p < parts; ++p) {
    const i64 begin = shape[0] * p / parts;
    const i64 end = shape[0] * (p + 1) / parts;
    index::Region region = index::whole_region(shape);
    region[0] = index::AxisMap(end - begin, shape[0], {{0, begin, end - begin}});
    holders->add(region);
  }
  return holders;
}

}  // namespace

TEST_CASE("rows that are cut in another way are the stretches of their sources") {
  CHECK(rc::check("any cuts", [] {
    const Shape shape{*rc::gen::inRange<i64>(8, 60), *rc::gen::inRange<i64>(1, 9)};
    const i64 from = *rc::gen::inRange<i64>(1, 6);
    const i64 to = *rc::gen::inRange<i64>(1, 6);
    TensorMove move;
    move.dtype = Dtype::kI16;
    move.shape = shape;
    move.from.holders = rows_of(shape, from);
    move.to.holders = rows_of(shape, to);
    for (int h = 0; h < from; ++h) move.from.slots.push_back({h, 100});
    for (int h = 0; h < to; ++h) move.to.slots.push_back({h, 7});
    const auto same = same_bytes(move, 1);
    RC_ASSERT(same.has_value());
    const i64 row = shape[1] * 2;
    i64 bytes = 0;
    for (const SameBytes& one : *same) {
      const i64 begin = shape[0] * one.from.file / from * row + one.from.offset - 100;
      const i64 placed = shape[0] * one.to.file / to * row + one.to.offset - 7;
      RC_ASSERT(begin == placed);
      bytes += one.bytes;
    }
    RC_ASSERT(bytes == shape[0] * row);
    RC_ASSERT(std::ssize(*same) <= from + to);
    RC_ASSERT(!same_bytes(move, shape[0] * row + 1).has_value());
  }));
}

TEST_CASE("columns and casts are no stretches") {
  TensorMove move;
  move.dtype = Dtype::kF32;
  move.shape = {8, 8};
  move.from = {rows_of(move.shape, 1), {{0, 0}}};
  move.to = {rows_of(move.shape, 2), {{0, 0}, {1, 0}}};
  CHECK(same_bytes(move, 1).has_value());
  move.cast_to = Dtype::kBF16;
  CHECK_FALSE(same_bytes(move, 1).has_value());
  move.cast_to.reset();
  auto columns = std::make_shared<index::HolderSet>(move.shape);
  for (i64 p = 0; p < 2; ++p) {
    index::Region region = index::whole_region(move.shape);
    region[1] = index::AxisMap(4, 8, {{0, 4 * p, 4}});
    columns->add(region);
  }
  move.to.holders = columns;
  CHECK_FALSE(same_bytes(move, 1).has_value());
}

}  // namespace shardtool::exec
