#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "lib/comm/communicator.h"
#include "lib/comm/tcp/meeting_place.h"
#include "lib/comm/tcp/tcp_meeting.h"

namespace shardtool::comm {

/// Processes, on one machine or several, that are connected by TCP; they meet as tcp_meeting.h
/// says. A process that dies closes its connections, so that the others know at once. With
/// Reach::kFirst only rank 0 can send to all and receive from all; all_gather and gather work, what
/// needs two others to meet throws kInternal.
///
/// Throws the errors of connect_processes.
std::unique_ptr<Communicator> meet(const MeetingPoint& point, int rank, int size,
                                   std::chrono::milliseconds patience = kMeetingTime,
                                   Reach reach = Reach::kEverybody,
                                   const std::atomic<bool>* cancel = nullptr);

}  // namespace shardtool::comm
