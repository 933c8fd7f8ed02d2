#include "lib/plan/placement/placement.h"

#include <doctest/doctest.h>

#include "tests/plan/placements.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::CollectiveOp;
using plan::Move;
using plan::move_between;
using plan::Placement;
using plan::ReduceOp;

namespace {

const auto kMax = Placement::partial(ReduceOp::kMax);
const auto kU = Placement::unknown();

/// Bytes that a device of `n` sends in a move of a group that owns `bytes`.
i64 sent(const Placement& from, const Placement& to, i64 n, i64 bytes) {
  const auto collective = plan::collective_for(move_between(from, to), {n, 1}, bytes);
  return collective ? wire_bytes(*collective) : 0;
}

}  // namespace

TEST_CASE("every pair of placements has its move") {
  CHECK(move_between(kR, kR) == Move::kNothing);
  CHECK(move_between(kR, kS0) == Move::kSlice);
  CHECK(move_between(kR, kP) == Move::kKeepOne);
  CHECK(move_between(kR, kMax) == Move::kImpossible);
  CHECK(move_between(kS0, kR) == Move::kAllGather);
  CHECK(move_between(kS0, kS0) == Move::kNothing);
  CHECK(move_between(kS0, kS1) == Move::kAllToAll);
  CHECK(move_between(kS0, kP) == Move::kImpossible);
  CHECK(move_between(kP, kR) == Move::kAllReduce);
  CHECK(move_between(kP, kS1) == Move::kReduceScatter);
  CHECK(move_between(kP, kP) == Move::kNothing);
  CHECK(move_between(kP, kMax) == Move::kImpossible);
  CHECK(move_between(kMax, kR) == Move::kAllReduce);
  CHECK(move_between(kU, kU) == Move::kNothing);
  for (const Placement& other : {kR, kS0, kP}) {
    CHECK(move_between(kU, other) == Move::kImpossible);
    CHECK(move_between(other, kU) == Move::kImpossible);
  }
}

TEST_CASE("bytes of a move are those of the group that owns the tensor") {
  // V (n-1)/n, V (n-1)/n^2, 2 V (n-1)/n
  CHECK(sent(kS0, kR, 4, 1024) == 768);
  CHECK(sent(kR, kS0, 4, 1024) == 0);
  CHECK(sent(kS0, kS1, 4, 1024) == 192);
  CHECK(sent(kP, kR, 4, 1024) == 1536);
  CHECK(sent(kP, kS0, 4, 1024) == 768);
  CHECK(sent(kR, kP, 4, 1024) == 0);
  CHECK(sent(kS0, kR, 1, 1024) == 0);
}

TEST_CASE("a tensor's bytes per device on a mesh") {
  // scaling-book sharding.md: int8 [128, 2048], rows over X and Y of {X2, Y8, Z2}: 16,384 bytes per
  // device, 524,288 in all; an array over X only on {X4, Y8, Z2}: 16 copies
  const mesh::Mesh pop_quiz({{"X", 2}, {"Y", 8}, {"Z", 2}});
  const auto rows = plan::in_mesh_order({kS0, kS0, kR}, 2);
  const i64 per_device = 128 * 2048 / parts(rows, pop_quiz, 0) / parts(rows, pop_quiz, 1);
  CHECK(per_device == 16'384);
  CHECK(per_device * pop_quiz.size() == 524'288);
  const mesh::Mesh question({{"X", 4}, {"Y", 8}, {"Z", 2}});
  CHECK(question.size() / parts(plan::in_mesh_order({kS0, kR, kR}, 1), question, 0) == 16);
}

TEST_CASE("placements are printed with the names of mesh axes") {
  const mesh::Mesh mesh({{"dp", 2}, {"tp", 4}, {"pp", 2}});
  CHECK(to_string(plan::in_mesh_order({kS0, kS0, kP}, 2), mesh) == "[dp, tp], []  P on pp");
  CHECK(to_string(kMax) == "P(max)");
  CHECK(to_string(kU) == "U");
}

TEST_CASE("a placement on an axis that the tensor lacks is refused") {
  CHECK_ERROR(kShapeMismatch, plan::in_mesh_order({kS1}, 1));
}
