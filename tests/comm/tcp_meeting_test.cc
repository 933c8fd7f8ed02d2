#include "lib/comm/tcp/tcp_meeting.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/comm/packed_error.h"
#include "lib/comm/tcp/handshake.h"
#include "lib/comm/tcp/meeting_file.h"
#include "lib/comm/tcp/tcp_link.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

constexpr int kProcesses = 3;
constexpr std::chrono::seconds kMeetingPatience{20};

MeetingNote note_of_first(const std::string& file) {
  while (true) {
    FoundNote found = read_meeting_file(file);
    if (found.note) return *std::move(found.note);
    std::this_thread::yield();
  }
}

/// Plays a process that process 0 lets in, and that has sent its addresses.
TcpLink come_to_first(const std::string& file, int rank) {
  const Deadline end = Deadline::clock::now() + kMeetingPatience;
  const MeetingNote note = note_of_first(file);
  const Credentials credentials{note.secret, "", kProcesses};
  Socket socket = connect(note.addresses.front(), end);
  REQUIRE(socket.is_open());
  GuestSide side(credentials, rank, 0);
  const auto challenge = socket.receive(kChallengeBytes, end);
  REQUIRE(challenge);
  REQUIRE(socket.send(side.answer(*challenge).value(), end));
  const auto welcome = socket.receive(kWelcomeBytes, end);
  REQUIRE(welcome);
  REQUIRE(side.is_welcome(*welcome));
  TcpLink link(std::move(socket));
  link.queue(FrameKind::kData, 0, "");
  return link;
}

/// Error with which process 0 aborts on this connection; nullopt if it ends it without one.
std::optional<Error> aborted_with(TcpLink& link) {
  while (!link.has_ended()) {
    for (const Frame& frame : link.pump()) {
      if (frame.kind == FrameKind::kAbort) return error_in(frame.bytes);
    }
    std::this_thread::yield();
  }
  return std::nullopt;
}

bool is_interruption_of(const std::optional<Error>& error, const std::string& process) {
  return error && error->code() == ErrorCode::kInterrupted &&
         testing::has_note(*error, "process", process);
}

/// Error of process 0, which meets two others that `others` plays.
template <class Others>
std::optional<Error> error_of_first(const std::atomic<bool>& interrupted, const Others& others) {
  const test::TempFolder folder;
  const std::string file = folder / "meeting";
  std::optional<Error> error;
  {
    const std::jthread first([&] {
      const Interruptible scope(&interrupted);
      error = testing::error_of([&] {
        return connect_processes(MeetingPoint(file), 0, kProcesses, kMeetingPatience).size();
      });
    });
    others(file);
  }
  return error;
}

TEST_CASE("process 0 that is interrupted before all have come tells those that have") {
  std::atomic<bool> interrupted = false;
  const auto error = error_of_first(interrupted, [&](const std::string& file) {
    TcpLink other = come_to_first(file, 1);
    interrupted = true;
    CHECK(is_interruption_of(aborted_with(other), "0 of 3"));
  });
  CHECK(is_interruption_of(error, "0 of 3"));
}

TEST_CASE("a process that is interrupted before all have come is named to all once they have") {
  for (const int ending : {1, 2}) {
    CAPTURE(ending);
    const std::string process = std::to_string(ending) + " of 3";
    const auto error = error_of_first(false, [&](const std::string& file) {
      TcpLink one = come_to_first(file, ending);
      one.queue(FrameKind::kAbort, 0,
                pack(Error(ErrorCode::kInterrupted, "interrupted").note("process", process)));
      one.finish_sending();
      TcpLink other = come_to_first(file, kProcesses - ending);
      CHECK(is_interruption_of(aborted_with(other), process));
    });
    CHECK(is_interruption_of(error, process));
  }
}

}  // namespace
}  // namespace shardtool::comm
