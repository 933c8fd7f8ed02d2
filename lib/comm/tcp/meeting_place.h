#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "lib/comm/launch.h"
#include "lib/comm/tcp/address.h"

namespace shardtool::comm {

struct MeetingPoint;

/// Time that processes wait for each other at the start.
inline constexpr std::chrono::seconds kMeetingTime{120};

/// Place where the processes of a launch find each other:
///
///     FOLDER             visible to all of them, writable by no other user
///     tcp://HOST:PORT    the host of the first process, and a port that is free there
///     env://             the same, in the variables MASTER_ADDR and MASTER_PORT
///
/// Any process can connect to an address, so the processes prove to each other that they have the
/// secret in the variable SHARDTOOL_SECRET.
struct MeetingPlace {
  enum class Kind { kFolder, kAddress, kMaster };
  Kind kind = Kind::kFolder;
  std::string folder = ".";
  Address address = {};  ///< for kAddress
};

/// Parses the option's text. Throws kUsage for an invalid address.
MeetingPlace parse_meeting(std::string_view text);

/// Meeting point of this launch, the same in all processes. Throws kUsage if the launch lacks the
/// variables that kMaster needs, or a secret for an address.
MeetingPoint meeting_point(const MeetingPlace& place, const Launch& launch);

}  // namespace shardtool::comm
