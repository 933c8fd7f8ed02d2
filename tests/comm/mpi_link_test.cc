#include "lib/comm/mpi/mpi_link.h"

#include <doctest/doctest.h>

#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

int messages = 0;
bool null_was_tested = false;

/// MPI that has `messages` messages and receives none of them.
shardtool_mpi_functions refusing_mpi() {
  shardtool_mpi_functions mpi{};
  mpi.probe = [](int, int* count) {
    *count = 4;
    return messages > 0 ? 1 : 0;
  };
  mpi.receive = [](void*, int) -> shardtool_mpi_request* { return nullptr; };
  mpi.test = [](shardtool_mpi_request* request) {
    null_was_tested = request == nullptr;
    return -1;
  };
  return mpi;
}

TEST_CASE("a message that MPI did not begin to receive is not waited for") {
  const shardtool_mpi_functions mpi = refusing_mpi();
  MpiLink link(mpi, 1);
  messages = 1;
  CHECK_ERROR(kPeerLost, link.pump());
  messages = 0;
  CHECK(link.pump().empty());
  CHECK_FALSE(null_was_tested);
}

}  // namespace
}  // namespace shardtool::comm
