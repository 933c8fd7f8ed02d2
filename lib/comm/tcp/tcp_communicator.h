#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "lib/comm/communicator.h"
#include "lib/comm/tcp/tcp_meeting.h"

namespace shardtool::comm {

/// Time limit for the processes of a launch to meet.
inline constexpr std::chrono::seconds kMeetingTime{120};

/// Connects processes on one or several machines by TCP; they meet as in tcp_meeting.h. A process
/// that dies closes its connections, so that the others detect it at once. With Reach::kFirst only
/// rank 0 can send to all and receive from all; all_gather and gather work, and operations between
/// two others throw kInternal.
///
/// Throws the errors of connect_processes.
std::unique_ptr<Communicator> meet(const MeetingPoint& point, int rank, int size,
                                   std::chrono::milliseconds patience = kMeetingTime,
                                   Reach reach = Reach::kEverybody,
                                   const std::atomic<bool>* cancel = nullptr);

}  // namespace shardtool::comm
