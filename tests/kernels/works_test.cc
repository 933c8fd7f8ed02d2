#include "tests/kernels/machine_test.h"
#include "tests/kernels/threads/block_machine.h"

namespace shardtool::kernels {
namespace {

TEST_CASE("works on the host move and decode bytes as the loops of the CPU do") {
  check_bytes<HostMachine>();
}

TEST_CASE("the threads of a block, in any order, give the CPU's products, bit for bit") {
  check_products<BlockMachine>();
}

TEST_CASE("works over many rows give what the op's body gives row by row") {
  check_ops<HostMachine, Field>();
  check_ops<HostMachine, double>();
  check_ops<HostMachine, float>();
}

TEST_CASE("a copy of too many loops is no work") {
  index::StridedCopy copy{0, 0, 1, std::vector<index::Loop>(kMostCopyLoops + 1, {1, 1, 1})};
  CHECK_FALSE(unit_copy<1>(copy, nullptr, nullptr));
  copy.loops.pop_back();
  CHECK(unit_copy<1>(copy, nullptr, nullptr));
}

TEST_CASE("divisions in 32 bits, where both numbers fit, are those in 64") {
  const auto agrees = [](i64 i, i64 n) {
    const Quotient quotient = divided(i, n);
    return quotient.whole == i / n && quotient.rest == i % n;
  };
  constexpr i64 kFits = (i64{1} << 32) - 1;
  for (const i64 i : {i64{0}, i64{1}, kFits - 1, kFits, kFits + 1, kFits * (kFits / 4)}) {
    for (const i64 n : {i64{1}, i64{3}, kFits - 1, kFits, kFits + 1, kFits * 5}) {
      CHECK(agrees(i, n));
    }
  }
  CHECK(rc::check("any", [&] {
    const auto any = [] { return *rc::gen::inRange<i64>(1, i64{1} << *rc::gen::inRange(1, 62)); };
    const i64 i = any(), n = any();
    RC_ASSERT(agrees(i, n));
  }));
}

TEST_CASE("slopes of linear biases halve evenly, and heads beyond a power of two stand between") {
  // Values of the paper and of BLOOM's library for 4 and for 6 heads.
  const std::vector<double> four = {0.25, 0.0625, 0.015625, 0.00390625};
  const std::vector<double> six = {0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125};
  for (i64 h = 0; h < 4; ++h) CHECK(alibi_slope(h, 4) == four[static_cast<size_t>(h)]);
  for (i64 h = 0; h < 6; ++h) CHECK(alibi_slope(h, 6) == six[static_cast<size_t>(h)]);
  CHECK(alibi_slope(0, 1) == std::exp2(-8));
}

}  // namespace
}  // namespace shardtool::kernels
