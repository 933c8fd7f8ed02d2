#include "lib/exec/chunks/chunk_plan.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>

#include "lib/base/error.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::exec {
namespace {

TensorMove move_between(const layout::Layout& from, const layout::Layout& to, Dtype dtype) {
  return {"t",
          dtype,
          from.shape(),
          {std::make_shared<const index::HolderSet>(from.holders()), {}},
          {std::make_shared<const index::HolderSet>(to.holders()), {}},
          {}};
}

TEST_CASE("chunks cover the tensor once, in order, each within the limits") {
  CHECK(rc::check("chunks partition the tensor", [] {
    const Shape shape = *gen::shape();
    const TensorMove move = move_between(*gen::layout(shape), *gen::layout(shape), Dtype::kF32);
    const ChunkLimits limits{*gen::between(1 << 10, 1 << 14), *gen::between(1 << 9, 1 << 12)};
    i64 bytes = 0;
    i64 sequence = 0;
    i64 last_end = 0;
    std::map<int, i64> bytes_to;
    try {
      ChunkPlan plan(move, limits);
      for (ChunkPlan::Position at; plan.next(at);) {
        RC_ASSERT(at.sequence == sequence++);
        const Chunk chunk = plan.chunk(at);
        i64 input_bytes = 0;
        for (const auto& input : chunk.inputs) input_bytes += input.bytes;
        RC_ASSERT(input_bytes <= limits.input_bytes);
        RC_ASSERT(chunk.input_places.front().place.dst >= last_end);
        last_end = chunk.input_places.front().place.dst;
        bytes += chunk.bytes;
        for (const ChunkOutput& output : chunk.outputs) {
          for (const ChunkTarget& target : output.targets) bytes_to[target.holder] += output.bytes;
        }
      }
      RC_ASSERT(plan.chunks() == sequence);
      for (int h = 0; h < move.to.holders->size(); ++h) {
        RC_ASSERT(plan.bytes_to(h) == bytes_to[h]);
      }
      RC_ASSERT(plan.bytes() == bytes);
      RC_ASSERT(bytes == byte_size(Dtype::kF32, shape).value());
    } catch (const Error& error) {
      RC_ASSERT(error.code() == ErrorCode::kLimit);  // more devices than such a small budget holds
    }
  }));
}

TEST_CASE("an 8-way column cut of a large matrix is eight copies a chunk, not one per row") {
  const Shape shape{53248, 16384};
  const layout::Layout one = layout::Layout::replicated(mesh::Mesh(), shape);
  const layout::Layout columns(
      mesh::parse_mesh("tp=8"), shape,
      {{layout::whole(53248), 1, {}}, {layout::split(16384, {{"tp"}}), 1, {}}});
  const TensorMove move = move_between(one, columns, Dtype::kBF16);
  ChunkPlan plan(move, {16 << 20, 4 << 20});
  ChunkPlan::Position at;
  REQUIRE(plan.next(at));
  const Chunk chunk = plan.chunk(at);
  CHECK(chunk.rows == 128);
  CHECK(chunk.copies.size() == 8);
  CHECK(chunk.outputs.size() == 8);
  CHECK(chunk.outputs[3].bytes == 128 * 16384 * 2 / 8);
}

TEST_CASE("a budget that does not hold one element for every rank is refused") {
  const layout::Layout columns(mesh::parse_mesh("tp=64"), {1, 64},
                               {{layout::whole(1), 1, {}}, {layout::whole(64), 1, {}}});
  const layout::Layout one = layout::Layout::replicated(mesh::Mesh(), {1, 64});
  const TensorMove move = move_between(one, columns, Dtype::kF64);
  CHECK_ERROR(kLimit, ChunkPlan(move, ChunkLimits{4, 4}).is_sequential(0));
}

}  // namespace
}  // namespace shardtool::exec
