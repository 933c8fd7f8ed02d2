#include "lib/comm/tcp/gate.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/interruption.h"
#include "lib/comm/packed_error.h"
#include "lib/comm/tcp/tcp_communicator.h"
#include "lib/comm/tcp/tcp_link.h"
#include "lib/comm/tcp/tcp_meeting.h"
#include "tests/comm/interrupted.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Credentials kLaunch{"0123456789abcdef0123456789abcdef", "job", 2};

Deadline in(milliseconds time) {
  return Deadline::clock::now() + time;
}

/// A listener on this machine only, with the gate of process 0.
struct Door {
  Listener listener = listen_at({"127.0.0.1", 0}, in(seconds(20)));
  Address address = listener.addresses.front();
  Gate gate{listener, kLaunch, 0};

  Socket stranger() const {
    Socket socket = connect(address, in(seconds(20)));
    REQUIRE(socket.is_open());
    return socket;
  }
  /// Meeting point of process 1 here.
  MeetingPoint point() const { return {address, kLaunch.launch, kLaunch.secret}; }
};

/// Has a process of the launch come to the door; returns its connection if it is admitted.
Socket come_in(const Door& door, int rank, int size = 2) {
  const Credentials credentials{kLaunch.secret, kLaunch.launch, size};
  Socket socket = door.stranger();
  GuestSide side(credentials, rank, 0);
  const auto challenge = socket.receive(kChallengeBytes, in(seconds(60)));
  const auto answer = challenge ? side.answer(*challenge) : std::nullopt;
  if (!answer || !socket.send(*answer, in(seconds(60)))) return {};
  const auto welcome = socket.receive(kWelcomeBytes, in(seconds(60)));
  return welcome && side.is_welcome(*welcome) ? std::move(socket) : Socket();
}

/// Lets process 1 connect after all strangers. Returns true if it is admitted within a minute.
bool lets_in_the_other(Door& door) {
  const std::jthread other([&] { static_cast<void>(come_in(door, 1)); });
  std::vector<Socket> peers(2);
  return door.gate.admit(peers, in(seconds(60))) == 1 && peers[1].is_open();
}

TEST_CASE("a hundred who connect and say nothing delay no process") {
  Door door;
  std::vector<Socket> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(door.stranger());
  const auto start = Deadline::clock::now();
  CHECK(lets_in_the_other(door));
  CHECK(Deadline::clock::now() - start < seconds(9));  // less than the time that a stranger may
                                                       // stay
}

TEST_CASE("of more than the gate holds at once, those who have waited longest go") {
  constexpr int kStrangers = 400;
  Door door;
  std::vector<Socket> silent;
  std::optional<Socket> other;
  const std::jthread comers([&] {
    for (int i = 0; i < kStrangers; ++i) silent.push_back(door.stranger());
    other = come_in(door, 1);
  });
  std::vector<Socket> peers(2);
  CHECK(door.gate.admit(peers, in(seconds(60))) == 1);
  CHECK(door.gate.refused() >= kStrangers - 256);
}

TEST_CASE("strangers of every kind are turned away, and counted") {
  Door door;
  std::vector<Socket> strangers;
  const auto comes = [&](const std::string& says) {
    strangers.push_back(door.stranger());
    CHECK(strangers.back().send(says, in(seconds(20))));
  };
  comes(std::string(kAnswerBytes, '\0'));
  comes(std::string(kAnswerBytes, '0'));
  comes(
      "GET / HTTP/1.1\r\nHost: shardtool\r\nUser-Agent: something that goes on and on and "
      "on\r\n\r\n");
  comes(std::string(1 << 20, 'x').substr(0, 60'000));
  comes("half an answer");
  REQUIRE(::shutdown(strangers.back().fd(), SHUT_WR) == 0);
  strangers.push_back(door.stranger());
  strangers.back() = Socket();  // gone at once
  CHECK(lets_in_the_other(door));
  CHECK(door.gate.refused() <= 6);
}

TEST_CASE("one with another secret is refused, and does not take the place of the right one") {
  for (const Credentials& wrong :
       {Credentials{"another secret of the same length", "job", 2},
        Credentials{kLaunch.secret, "another job", 2}, Credentials{kLaunch.secret, "job", 3}}) {
    Door door;
    std::vector<Socket> peers(2);
    const std::jthread other([&] {
      const Socket socket = door.stranger();
      GuestSide side(wrong, 1, 0);
      const auto challenge = socket.receive(kChallengeBytes, in(seconds(20)));
      REQUIRE(challenge);
      CHECK(socket.send(*side.answer(*challenge), in(seconds(20))));
      CHECK_FALSE(socket.receive(1, in(seconds(20))));
    });
    const Deadline end = in(seconds(20));
    while (door.gate.refused() == 0 && Deadline::clock::now() < end) {
      CHECK(door.gate.admit(peers, in(milliseconds(20))) == 0);
    }
    CHECK(door.gate.refused() == 1);
  }
}

TEST_CASE("a process that comes again takes its place again") {
  const Door door;
  std::vector<Socket> peers(3);
  const Credentials three{kLaunch.secret, kLaunch.launch, 3};
  Gate gate(door.listener, three, 0);
  std::atomic<int> came = 0;
  {
    const std::jthread others([&] {
      for (const int rank : {1, 1, 2}) came += come_in(door, rank, 3).is_open() ? 1 : 0;
    });
    CHECK(gate.admit(peers, in(seconds(20))) == 2);
  }
  CHECK(came == 3);
}

TEST_CASE("the gate closes at its deadline, whoever trickles") {
  Door door;
  std::atomic<bool> done = false;
  const Socket slow = door.stranger();
  const std::jthread trickle([&] {
    while (!done && slow.send("x", in(milliseconds(0))))
      std::this_thread::sleep_for(milliseconds(5));
  });
  std::vector<Socket> peers(2);
  const auto start = Deadline::clock::now();
  CHECK(door.gate.admit(peers, in(milliseconds(100))) == 0);
  done = true;
  CHECK(Deadline::clock::now() - start >= milliseconds(100));
  CHECK(Deadline::clock::now() - start < seconds(5));
}

TEST_CASE("processes that wait for the others end when they are interrupted") {
  const test::TempFolder folder;
  for (const int rank : {0, 1}) {
    for (const bool before : {true, false}) {
      CAPTURE(rank);
      CAPTURE(before);
      const auto error = testing::interrupted(before, [&] {
        connect_processes(MeetingPoint(folder / "meeting"), rank, 2, seconds(20));
      });
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::kInterrupted);
    }
  }
}

TEST_CASE("a process that process 0 has let in tells it when it is interrupted, and ends") {
  Door door;
  std::atomic<bool> cancel = false;
  std::optional<Error> error;
  std::vector<Socket> peers(2);
  {
    const std::jthread process([&] {
      const Interruptible scope(&cancel);
      error = testing::error_of(
          [&] { return connect_processes(door.point(), 1, 2, seconds(20)).size(); });
    });
    CHECK(door.gate.admit(peers, in(seconds(20))) == 1);
    cancel = true;  // process 0 is silent from now on
  }
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kInterrupted);
  const std::vector<Frame> told = TcpLink(std::move(peers[1])).pump();
  REQUIRE(told.size() == 2);
  CHECK(told[0].kind == FrameKind::kData);  // its addresses
  CHECK(told[1].kind == FrameKind::kAbort);
  CHECK(error_in(told[1].bytes).code() == ErrorCode::kInterrupted);
  CHECK(testing::has_note(error_in(told[1].bytes), "process", "1 of 2"));
}

TEST_CASE("a process does not wait past its deadline for one that trickles or is silent") {
  for (const bool trickles : {false, true}) {
    CAPTURE(trickles);
    const Door door;
    std::atomic<bool> done = false;
    const std::jthread impostor([&] {
      std::vector<Socket> taken;
      while (!done) {
        if (auto socket = accept(door.listener.sockets.front()))
          taken.push_back(*std::move(socket));
        for (const Socket& one : taken) {
          if (trickles) static_cast<void>(one.send("s", in(milliseconds(0))));
        }
        std::this_thread::sleep_for(milliseconds(5));
      }
    });
    const auto start = Deadline::clock::now();
    const auto error = testing::error_of(
        [&] { return connect_processes(door.point(), 1, 2, milliseconds(200)).size(); });
    done = true;
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kPeerLost);
    CHECK(error->is_leaderless());
    CHECK(Deadline::clock::now() - start < seconds(5));
  }
}

TEST_CASE("an impostor who listens at the address learns no secret and is not believed") {
  const Door door;
  std::string heard;
  std::optional<Error> error;
  {
    const std::jthread process([&] {
      error = testing::error_of(
          [&] { return connect_processes(door.point(), 1, 2, milliseconds(500)).size(); });
    });
    std::optional<Socket> caller;
    while (!caller) caller = accept(door.listener.sockets.front());
    CHECK(caller->send(std::string(kGreeting) + std::string(kNonceBytes, 'n'), in(seconds(20))));
    heard = caller->receive(kAnswerBytes, in(seconds(20))).value_or("");
    CHECK(caller->send(std::string(kWelcomeBytes, 'w'), in(seconds(20))));
  }
  CHECK(heard.size() == kAnswerBytes);
  CHECK(heard.find(kLaunch.secret) == std::string::npos);
  REQUIRE(error);
  CHECK(error->message() == "process 0 of 2 could not be reached");
  REQUIRE(error->notes().size() == 2);
  CHECK(error->notes()[1].first == "found");
}

}  // namespace
}  // namespace shardtool::comm
