#include "lib/comm/call_time.h"

#include <doctest/doctest.h>

#include "lib/comm/embedded.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

TEST_CASE("a call's time is positive, the same in every rank, and of the operation asked") {
  constexpr i64 kBytes = 3000;  // not a multiple of the rank count
  for (const Operation operation :
       {Operation::kAllGather, Operation::kReduceScatter, Operation::kAllReduce,
        Operation::kAllToAll, Operation::kBroadcast, Operation::kSend}) {
    CAPTURE(name_of(operation));
    std::vector<double> found(3);
    run_embedded(3, [&](Communicator& comm) {
      const Count before = comm.counters()[operation];
      found[static_cast<size_t>(comm.rank())] = call_us(comm, operation, kBytes, 2);
      const Count& after = comm.counters()[operation];
      if (after.calls < before.calls + 3) throw Error(ErrorCode::kInternal, "too few calls");
    });
    CHECK(found[0] > 0);
    CHECK(found == std::vector<double>(3, found[0]));
  }
}

TEST_CASE("what has no time of its own is refused") {
  CHECK_ERROR(
      kInternal,
      (run_embedded(2, [](Communicator& comm) { call_us(comm, Operation::kSplit, 8, 1); }), 0));
}

}  // namespace
}  // namespace shardtool::comm
