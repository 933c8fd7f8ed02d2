#include "lib/layout/gathered.h"

#include <doctest/doctest.h>

#include "tests/support/held.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::testing;
using layout::cuts;
using layout::nest;
using layout::padded;
using layout::scale;
using layout::split;

namespace {
std::string joined(const layout::AxisExpr& expr, const std::string& axis) {
  return to_string(gathered(expr, {axis}));
}
}  // namespace

TEST_CASE("a gather leaves a mesh axis out of every cut") {
  CHECK(joined(split(8, {{"tp"}, {"dp"}}), "dp") == "Split(8, tp)");
  CHECK(joined(scale(split(8, kTp), 2), "tp") == "Scale(Whole(8), 2)");
  CHECK(joined(nest(split(8, kTp), {{"dp"}}), "dp") == "Split(8, tp)");
  CHECK(joined(nest(split(8, kTp), {{"dp"}}), "tp") == "Nest(Whole(8), dp)");
}

TEST_CASE("an axis that is cut again after a gather keeps the padding of one part") {
  // One device along tp has 2 indices and 1 of padding, so that the first part over dp is 2 long.
  const auto expr = nest(split(2, kTp, padded(3)), {{"dp"}}, padded(1));
  CHECK(joined(expr, "tp") == "Nest(Split(2, nothing, padded(3)), dp, padded(1))");
  CHECK(joined(split(2, kTp, padded(3)), "tp") == "Whole(2)");
  CHECK(joined(nest(expr, {{"dp"}}, padded(5)), "dp") == joined(split(2, kTp, padded(3)), "dp"));
}

TEST_CASE("a gather joins listed parts along all of their mesh axes or none") {
  CHECK(joined(cuts({0, 5, 7}, kTp), "tp") == "Whole(7)");
  CHECK(joined(cuts({0, 5, 7}, kTp), "dp") == "Cuts([0, 5, 7], tp)");
  CHECK_ERROR(kUnsupported, joined(cuts({0, 1, 2, 3, 4}, {{"tp"}, {"dp"}}), "dp"));
}

TEST_CASE("a layout after a gather has replicas along the axis") {
  const mesh::Mesh mesh({{"dp", 2}, {"tp", 2}});
  const layout::Layout stored(mesh, {4, 8}, {{split(4, {{"dp"}}), 1, {}}, {split(8, kTp), 1, {}}});
  const layout::Layout computed = gathered(stored, {"dp"});
  for (i64 rank = 0; rank < mesh.size(); ++rank) {
    CHECK(index::to_string(computed.region(rank)->at(0)) == "[0, 4)");
    CHECK(computed.region(rank)->at(1) == stored.region(rank)->at(1));
  }
}
