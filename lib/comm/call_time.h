#pragma once

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Median time of one call in microseconds over `rounds`, in the slowest process; short calls are
/// repeated within a round. `bytes` is the data of one process:
///
///     all_gather       the gathered result        reduce_scatter   the input
///     all_reduce       the buffer                 all_to_all       the parts for all processes
///     broadcast        the buffer                 send             one message to the next rank
///
/// Sums are the engine's own where it has them.
///
/// Every process calls it and gets the same number. Throws the operation's errors, and kInternal
/// for any other operation.
double call_us(Communicator& comm, Operation operation, i64 bytes, i64 rounds);

}  // namespace shardtool::comm
