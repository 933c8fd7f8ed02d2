#include "tests/kernels/machine_test.h"

namespace shardtool::kernels {
namespace {

TEST_CASE("works on the host move and decode bytes as the loops of the CPU do") {
  check_bytes<HostMachine>();
}

TEST_CASE("the parts of products that threads share add up to the CPU's products, bit for bit") {
  check_products<HostMachine>();
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

}  // namespace
}  // namespace shardtool::kernels
