#include "tests/kernels/guarded_page.h"
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

TEST_CASE("the threads of a block read no byte behind a matrix") {
  constexpr i64 kRows = 3;
  const GuardedPage page;
  for (const Dtype dtype : {Dtype::kU8, Dtype::kBF16, Dtype::kF32, Dtype::kF64}) {
    for (i64 columns = 1; columns <= 40; ++columns) {
      const i64 bytes = kRows * columns * bits(dtype) / 8;
      const StoredMatrix w{dtype, page.end() - bytes, kRows, columns};
      BlockMachine machine;
      const auto ones = [](i64 n) { return std::vector<Field>(static_cast<size_t>(n), Field{1}); };
      std::vector<Field> expected = ones(kRows), sums = ones(columns);
      multiply_rows(w, NumberMap::kBits, {ones(columns).data(), 1, columns},
                    {expected.data(), 1, kRows});
      Field* y = machine.put(ones(kRows));
      machine.multiply_rows(w, NumberMap::kBits,
                            RowView<const Field>{machine.put(ones(columns)), 1, columns},
                            RowView<Field>{y, 1, kRows});
      CHECK(machine.get(y, expected.size()) == expected);
      add_columns(w, NumberMap::kBits, {ones(kRows).data(), 1, kRows}, {sums.data(), 1, columns});
      y = machine.put(ones(columns));
      machine.add_columns(w, NumberMap::kBits,
                          RowView<const Field>{machine.put(ones(kRows)), 1, kRows},
                          RowView<Field>{y, 1, columns});
      CHECK(machine.get(y, sums.size()) == sums);
    }
  }
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
