#include "lib/comm/tcp/meeting_place.h"

#include <doctest/doctest.h>

#include <array>
#include <thread>

#include "lib/comm/engine.h"
#include "lib/comm/tcp/tcp_communicator.h"
#include "tests/comm/laws.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

using Kind = MeetingPlace::Kind;
using std::chrono::milliseconds;

Launch launch_at(int rank, int size, std::string master = {}) {
  return {"srun", rank, size, "job", std::move(master), "0123456789abcdef", {}};
}

/// Returns a port that was free a moment ago.
int free_port() {
  return listen().addresses.front().port;
}

TEST_CASE("a place to meet is a folder, an address, or what the launch's variables say") {
  CHECK(parse_meeting("shared/jobs").folder == "shared/jobs");
  CHECK(parse_meeting("env://").kind == Kind::kMaster);
  const MeetingPlace place = parse_meeting("tcp://node-1.cluster:29500");
  CHECK(place.kind == Kind::kAddress);
  CHECK(place.address.host == "node-1.cluster");
  CHECK(place.address.port == 29500);
  CHECK(parse_meeting("tcp://[fe80::1]:80").address.host == "fe80::1");
  for (const char* wrong : {"tcp://", "tcp://host", "tcp://:1", "tcp://host:", "tcp://host:0",
                            "tcp://host:65536", "tcp://host:1x", "tcp://host:-1"}) {
    CAPTURE(wrong);
    CHECK_ERROR(kUsage, parse_meeting(wrong));
  }
}

TEST_CASE("where a launch meets is the same in all its processes, and another launch's elsewhere") {
  const auto point = meeting_point(parse_meeting("f"), launch_at(0, 2));
  CHECK(point.file.starts_with("f/.shardtool-"));
  CHECK(point.file == meeting_point(parse_meeting("f"), launch_at(1, 2)).file);
  const auto master = meeting_point(parse_meeting("env://"), launch_at(1, 2, "n1:7"));
  CHECK(master.address->host == "n1");
  CHECK(master.address->port == 7);
  CHECK(master.secret == "0123456789abcdef");
  CHECK(master.launch == meeting_point(parse_meeting("tcp://a:1"), launch_at(0, 2)).launch);
  Launch other = launch_at(0, 2);
  other.job = "other";
  CHECK(master.launch != meeting_point(parse_meeting("tcp://a:1"), other).launch);
  CHECK_ERROR(kUsage, meeting_point(parse_meeting("env://"), launch_at(1, 2)));
  CHECK_ERROR(kUsage, meeting_point(parse_meeting("env://"), launch_at(1, 2, "n1:x")));
}

TEST_CASE("at an address nobody meets without a secret, or with a short one") {
  for (const char* secret : {"", "x", "0123456789abcde"}) {
    for (const char* place : {"tcp://127.0.0.1:1", "tcp://n1:1", "env://"}) {
      Launch launch = launch_at(1, 2, "n1:7");
      launch.secret = secret;
      const auto error =
          testing::error_of([&] { return meeting_point(parse_meeting(place), launch).secret; });
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::kUsage);
      CHECK(error->is_leaderless());  // possibly only this process lacks it
      REQUIRE(error->help_lines().size() == 3);
      CHECK(error->help_lines()[0].find("export SHARDTOOL_SECRET=") == 0);
      CHECK(error->help_lines()[1].find("-x SHARDTOOL_SECRET") != std::string::npos);
    }
  }
  CHECK(meeting_point(parse_meeting("f"), {"srun", 0, 2, "job"}).secret.empty());
}

/// True if a process listens there.
bool answers(const std::string& host, int port) {
  return connect({host, port}, Deadline::clock::now() + milliseconds(5000)).is_open();
}

TEST_CASE("where an address is named, processes listen at no other") {
  const Deadline end = Deadline::clock::now() + std::chrono::seconds(20);
  const Listener here = listen_at({"127.0.0.1", 0}, end);
  REQUIRE(here.addresses.size() == 1);
  const int port = here.addresses.front().port;
  CHECK(answers("127.0.0.1", port));
  CHECK_FALSE(answers("127.0.0.2", port));
  const Listener anywhere = listen();
  CHECK(answers("127.0.0.2", anywhere.addresses.front().port));
}

TEST_CASE("an address of another machine, and a host that nobody knows, are named") {
  const Deadline end = Deadline::clock::now() + std::chrono::seconds(20);
  const auto elsewhere = testing::error_of([&] { return listen_at({"192.0.2.1", 9}, end); });
  REQUIRE(elsewhere);
  CHECK(elsewhere->message().find("192.0.2.1:9") != std::string::npos);
  CHECK(elsewhere->help_lines().at(0).find("process 0 runs") != std::string::npos);
  const auto unknown = testing::error_of([&] { return listen_at({"no such host", 9}, end); });
  REQUIRE(unknown);
  CHECK(unknown->message().find("no address of this host is known") != std::string::npos);
}

TEST_CASE("processes that meet at an address keep the laws of a communicator") {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    constexpr int kSize = 3;
    EngineChoice options;
    options.engine = Engine::kTcp;
    options.meeting = parse_meeting("env://");
    const std::string master = std::string(host) + ":" + std::to_string(free_port());
    std::array<std::string, kSize> digests;
    {
      std::vector<std::jthread> processes;
      for (int rank = kSize - 1; rank >= 0; --rank) {
        processes.emplace_back([&, own = options, rank]() mutable {
          own.launch = launch_at(rank, kSize, master);
          digests[static_cast<size_t>(rank)] = keep_laws(*connect(own), 5);
        });
      }
    }
    for (const std::string& digest : digests) CHECK(digest.size() == digests[0].size());
    CHECK_FALSE(digests[0].empty());
  }
}

TEST_CASE("those of another launch, and strangers, are not let in at an address") {
  const int port = free_port();
  const Address here{"127.0.0.1", port};
  std::optional<Error> lonely;
  {
    const std::jthread first([&] {
      lonely = testing::error_of(
          [&] { return meet(MeetingPoint(here, "job", "right"), 0, 2, milliseconds(700)); });
    });
    const auto stranger = testing::error_of(
        [&] { return meet(MeetingPoint(here, "job", "wrong"), 1, 2, milliseconds(400)); });
    REQUIRE(stranger);
    CHECK(stranger->message() == "process 0 of 2 could not be reached");
    CHECK(stranger->notes().at(0).second == "127.0.0.1:" + std::to_string(port));
  }
  REQUIRE(lonely);
  CHECK(lonely->message() == "only 1 of 2 processes have begun");
  REQUIRE(lonely->notes().size() == 2);
  CHECK(lonely->notes()[0].second == "127.0.0.1:" + std::to_string(port));
  CHECK(lonely->notes()[1].first == "refused");
}

TEST_CASE("a port that another program has, and a host that nobody knows, are named") {
  const Listener taken = listen();
  const Address address{"127.0.0.1", taken.addresses.front().port};
  const auto error = testing::error_of(
      [&] { return meet(MeetingPoint(address, "job", "secret"), 0, 2, milliseconds(100)); });
  REQUIRE(error);
  CHECK(error->exit_status() == 6);
  CHECK(error->message().find(std::to_string(address.port)) != std::string::npos);
  const Deadline end = Deadline::clock::now() + std::chrono::seconds(20);
  CHECK(resolved({"no such host", 1}, end).empty());
  CHECK(resolved({"no such host", 1}, Deadline::clock::now()).empty());
  CHECK(resolved(address, end).at(0).host == "127.0.0.1");
}

}  // namespace
}  // namespace shardtool::comm
