#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lib/comm/communicator.h"
#include "lib/comm/tcp/meeting_place.h"
#include "lib/comm/tcp/tcp_meeting.h"

namespace shardtool::comm {

/// Processes, on one machine or several, that are connected by TCP; they meet as tcp_meeting.h
/// says. A process that dies closes its connections, so that the others know at once.
///
/// Throws the errors of connect_processes.
std::unique_ptr<Communicator> meet(const MeetingPoint& point, int rank, int size,
                                   std::chrono::milliseconds patience = kMeetingTime);

}  // namespace shardtool::comm
