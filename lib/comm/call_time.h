#pragma once

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Microseconds of one call, in the process that takes longest: the median over `rounds`, short
/// calls several times in a round. `bytes` is what a process has of the operation:
///
///     all_gather       the gathered result        reduce_scatter   the input
///     all_reduce       the buffer                 all_to_all       the parts for all processes
///     broadcast        the buffer                 send             of a message, each to the next
///
/// Every process calls it and gets the same number. Throws what the operation throws, kInternal for
/// any other operation.
double call_us(Communicator& comm, Operation operation, i64 bytes, i64 rounds);

}  // namespace shardtool::comm
