#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "lib/comm/launch.h"
#include "lib/comm/tcp/address.h"

namespace shardtool::comm {

struct MeetingPoint;

/// How long processes wait for each other to begin.
inline constexpr std::chrono::seconds kMeetingTime{120};

/// Where the processes of a launch are told to meet:
///
///     FOLDER             all of them see it, and nobody else may write there
///     tcp://HOST:PORT    the host of the first process, and a port that is free there
///     env://             the same, in the variables MASTER_ADDR and MASTER_PORT
///
/// At an address anybody can knock: processes that meet there prove to each other that they have
/// the secret that the variable SHARDTOOL_SECRET carries.
struct MeetingPlace {
  enum class Kind { kFolder, kAddress, kMaster };
  Kind kind = Kind::kFolder;
  std::string folder = ".";
  Address address = {};  ///< of kAddress
};

/// What was typed. Throws kUsage for an address that is none.
MeetingPlace parse_meeting(std::string_view text);

/// Where those of this launch meet; the same in all of them. Throws kUsage where the launch does
/// not say what kMaster needs, or has no secret for an address.
MeetingPoint meeting_point(const MeetingPlace& place, const Launch& launch);

}  // namespace shardtool::comm
