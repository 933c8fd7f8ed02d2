#include "lib/comm/message_communicator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/comm/packed_error.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

/// Event on a link: a frame arrives, or the peer ends.
struct Arrival {
  int from = 0;
  std::optional<Frame> frame = {};
};

/// Link to a peer of which the test decides what arrives when.
class ScriptedLink final : public MessageLink {
 public:
  void arrive(const std::optional<Frame>& frame) {
    ++arrivals_;
    if (frame) {
      arrived_.push_back(*frame);
    } else {
      ended_ = true;
    }
  }

  std::vector<Frame> pump() override { return std::exchange(arrived_, {}); }
  std::uint64_t left() const override { return sent_; }
  std::uint64_t activity() const override { return arrivals_; }
  bool has_ended() const override { return ended_ && arrived_.empty(); }

 protected:
  void enqueue(std::string, std::string) override { ++sent_; }

 private:
  std::vector<Frame> arrived_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t sent_ = 0;
  bool ended_ = false;
};

/// Process 0 of three. Whenever it waits, the next `at_once` arrivals come.
class ScriptedCommunicator final : public MessageCommunicator {
 public:
  ScriptedCommunicator(std::vector<Arrival> schedule, size_t at_once)
      : MessageCommunicator(0, 3, scripted_links()),
        schedule_(std::move(schedule)),
        at_once_(at_once) {}
  ~ScriptedCommunicator() override { end_answers(); }

 protected:
  void pause(int) override {
    const std::lock_guard lock(mutex());
    for (size_t i = 0; i < at_once_ && next_ < schedule_.size(); ++i, ++next_) {
      const Arrival& arrival = schedule_[next_];
      static_cast<ScriptedLink&>(*links()[static_cast<size_t>(arrival.from)]).arrive(arrival.frame);
    }
  }

 private:
  static Links scripted_links() {
    Links links(3);
    for (size_t peer = 1; peer < links.size(); ++peer) {
      links[peer] = std::make_unique<ScriptedLink>();
    }
    return links;
  }

  const std::vector<Arrival> schedule_;
  const size_t at_once_;
  size_t next_ = 0;
};

/// Calls take(schedule) for every order of the arrivals in which each peer's are in theirs.
template <class Take>
void for_every_order(const std::vector<Arrival>& first, const std::vector<Arrival>& second,
                     const Take& take) {
  std::vector<int> peers(first.size(), 1);
  peers.insert(peers.end(), second.size(), 2);
  do {
    std::vector<Arrival> schedule;
    size_t taken[] = {0, 0};
    for (const int peer : peers) {
      schedule.push_back(peer == 1 ? first[taken[0]++] : second[taken[1]++]);
    }
    take(schedule);
  } while (std::ranges::next_permutation(peers).found);
}

/// Errors of process 0 in every order and every number of arrivals at once, while it waits for
/// either peer.
template <class Take>
void for_every_error(const std::vector<Arrival>& first, const std::vector<Arrival>& second,
                     const Take& take) {
  for_every_order(first, second, [&](const std::vector<Arrival>& schedule) {
    for (size_t at_once = 1; at_once <= schedule.size(); ++at_once) {
      for (const int awaited : {1, 2}) {
        CAPTURE(at_once);
        CAPTURE(awaited);
        ScriptedCommunicator comm(schedule, at_once);
        comm.set_deadline(std::chrono::seconds(20), std::chrono::seconds(20));
        const auto error = testing::error_of([&] { return comm.receive(awaited); });
        REQUIRE(error);
        take(*error);
      }
    }
  });
}

/// Frames of a process that fails, of one that hears of it and passes it on, and their ends.
std::vector<Arrival> failing(int peer, const Error& error) {
  return {{peer, Frame{FrameKind::kStop, 0, {}}},
          {peer, Frame{FrameKind::kAbort, 0, pack(error)}},
          {peer}};
}

TEST_CASE("in whatever order its end and what others pass on arrive, a failing process is told") {
  for (const ErrorCode code :
       {ErrorCode::kUsage, ErrorCode::kConfig, ErrorCode::kUnreadable, ErrorCode::kNoSpace,
        ErrorCode::kLimit, ErrorCode::kInterrupted, ErrorCode::kInternal}) {
    const Error failure = Error(code, "no heads").note("process", "1 of 3").help("add heads");
    for_every_error(failing(1, failure), failing(2, failure), [&](const Error& error) {
      CHECK(error.code() == code);
      CHECK(error.message() == "no heads");
      CHECK(testing::has_note(error, "process", "1 of 3"));
      CHECK(error.help_lines() == std::vector<std::string>{"add heads"});
    });
  }
}

TEST_CASE("of two failing processes one is told, with its own words") {
  const Error first = Error(ErrorCode::kConfig, "no heads").note("process", "1 of 3");
  const Error second = Error(ErrorCode::kNoSpace, "full").note("process", "2 of 3");
  for_every_error(failing(1, first), failing(2, second), [](const Error& error) {
    const bool is_first = error.code() == ErrorCode::kConfig;
    CHECK(error.message() == (is_first ? "no heads" : "full"));
    CHECK(testing::has_note(error, "process", is_first ? "1 of 3" : "2 of 3"));
  });
}

TEST_CASE("a process that dies without a word is lost, whoever notices it first") {
  const Error loss(ErrorCode::kPeerLost, "process 1 of 3 ended without a word");
  const std::vector<Arrival> dies{{1}};
  for_every_order(dies, failing(2, loss), [&](const std::vector<Arrival>& schedule) {
    ScriptedCommunicator comm(schedule, 1);
    comm.set_deadline(std::chrono::seconds(20), std::chrono::seconds(20));
    const auto error = testing::error_of([&] { return comm.receive(1); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kPeerLost);
    CHECK(error->message() == loss.message());
  });
}

TEST_CASE("an abort that is no error ends the run all the same") {
  ScriptedCommunicator comm({{1, Frame{FrameKind::kAbort, 0, "no heads"}}}, 1);
  const auto error = testing::error_of([&] { return comm.receive(2); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPeerLost);
}

}  // namespace
}  // namespace shardtool::comm
