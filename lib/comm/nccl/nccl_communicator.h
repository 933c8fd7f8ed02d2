#pragma once

#include <memory>
#include <string>

#include "lib/comm/communicator.h"
#include "lib/comm/nccl/nccl_libraries.h"

namespace shardtool::comm {

/// The libraries with their versions. Throws kEngineMissing when one of them is not here or lacks a
/// function, and in a build without NCCL. Asks for no GPU.
std::string found_nccl(const NcclLibraries& libraries);

/// Connects the processes of `control` so that they exchange large messages over NCCL, each with a
/// GPU of its own, gpu_of(). all_gather, broadcast, all_to_all and the native sums go through
/// device memory; point-to-point messages, sizes, and the end of a run go over `control`.
///
///     all_gather              ncclAllGather of equal parts, else a group of ncclBroadcast
///     broadcast               ncclBroadcast
///     all_to_all              a group of ncclSend and ncclRecv, as NCCL itself does it
///     native_all_reduce       ncclAllReduce of F16, BF16, F32 or F64
///     native_reduce_scatter   ncclReduceScatter
///
/// All processes call this. If one lacks the libraries or a GPU, all throw kEngineMissing and name
/// it, as in a build without NCCL. No wait for NCCL exceeds the deadline, or goes on for more than
/// 5 s after a process that takes part has ended: it throws kPeerLost.
std::unique_ptr<Communicator> open_nccl(std::unique_ptr<Communicator> control,
                                        const NcclLibraries& libraries);

}  // namespace shardtool::comm
