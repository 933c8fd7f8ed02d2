#include "lib/comm/tcp/meeting_place.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/comm/tcp/tcp_meeting.h"

namespace shardtool::comm {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kMaster = "env://";
constexpr int kMostPort = 65'535;
/// Shorter secrets could be found by brute force from recorded traffic.
constexpr size_t kLeastSecretBytes = 16;

/// Short name of a launch: FNV-1a, which gives the same result in every process.
std::string short_name(std::string_view job) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char letter : job) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

/// Parses HOST:PORT, or [HOST]:PORT for a numeric host with colons.
Address address_in(std::string_view text) {
  const size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string_view number = colon == text.npos ? "" : text.substr(colon + 1);
  int port = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), port);
  const bool is_number = error == std::errc() && end == number.data() + number.size();
  if (!host.empty() && is_number && port > 0 && port <= kMostPort) return {std::string(host), port};
  throw Error(ErrorCode::kUsage, fmt::format("'{}' is not a host and port", text))
      .note("expected", "tcp://HOST:PORT, with a port from 1 to 65535");
}

/// Secret for meeting at an address. Every process without it throws: rank 0 may have it when a
/// launcher does not pass the variable to other machines.
std::string required_secret(const Launch& launch) {
  const size_t length = launch.secret.size();
  if (length >= kLeastSecretBytes) return launch.secret;
  throw Error(ErrorCode::kUsage,
              length == 0 ? fmt::format("processes that meet at an address need a secret, and {} "
                                        "is not set in process {} of {}",
                                        kSecretVariable, launch.rank, launch.size)
                          : fmt::format("{} has {} characters, expected {} or more",
                                        kSecretVariable, length, kLeastSecretBytes))
      .help(fmt::format("export {}=$(openssl rand -hex 32) before the launch", kSecretVariable))
      .help(
          fmt::format("mpirun takes it to every machine with -x {0}, srun by itself; for torchrun "
                      "set the same on every machine",
                      kSecretVariable))
      .help("or meet in a folder that all processes see, with --meeting FOLDER")
      .leaderless();
}

}  // namespace

MeetingPlace parse_meeting(std::string_view text) {
  MeetingPlace place;
  if (text == kMaster) {
    place.kind = MeetingPlace::Kind::kMaster;
  } else if (text.starts_with(kTcp)) {
    place.kind = MeetingPlace::Kind::kAddress;
    place.address = address_in(text.substr(kTcp.size()));
  } else {
    place.folder = text;
  }
  return place;
}

MeetingPoint meeting_point(const MeetingPlace& place, const Launch& launch) {
  const std::string name = short_name(launch.job);
  switch (place.kind) {
    case MeetingPlace::Kind::kFolder:
      return (std::filesystem::path(place.folder) / fmt::format(".shardtool-{}.meeting", name))
          .string();
    case MeetingPlace::Kind::kAddress:
      return {place.address, name, required_secret(launch)};
    case MeetingPlace::Kind::kMaster:
      break;
  }
  if (!launch.master.empty()) return {address_in(launch.master), name, required_secret(launch)};
  throw Error(ErrorCode::kUsage, "MASTER_ADDR and MASTER_PORT are not set in this launch")
      .help("set them, or name a place with --meeting FOLDER or --meeting tcp://HOST:PORT");
}

}  // namespace shardtool::comm
