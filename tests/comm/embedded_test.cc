#include "lib/comm/embedded.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "lib/base/error.h"
#include "lib/comm/reduce.h"
#include "tests/comm/interrupted.h"
#include "tests/comm/laws.h"
#include "tests/comm/refused_threads.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

using std::chrono::milliseconds;
using Texts = std::vector<std::string>;

std::optional<Error> run_fails(int ranks, const std::function<void(Communicator&)>& body) {
  return testing::error_of([&] {
    run_embedded(ranks, body);
    return 0;
  });
}

TEST_CASE("threads keep the laws of a communicator") {
  for (int size = 1; size <= 5; ++size) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      CAPTURE(size);
      CAPTURE(seed);
      CHECK_NOTHROW(check_laws(run_embedded, size, seed));
    }
  }
}

TEST_CASE("what one rank throws ends all, and is what is told") {
  std::atomic<int> told = 0;
  const auto error = run_fails(4, [&](Communicator& comm) {
    if (comm.rank() == 2) throw Error(ErrorCode::kConfig, "no heads");
    try {
      comm.receive(3 - comm.rank());
    } catch (const Error& lost) {
      told += lost.code() == ErrorCode::kConfig && lost.message() == "no heads" &&
              testing::has_note(lost, "process", "2 of 4");
      throw;
    }
  });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kConfig);
  CHECK(error->message() == "no heads");
  CHECK(error->notes() == std::vector{std::pair<std::string, std::string>("process", "2 of 4")});
  CHECK(told == 3);
}

TEST_CASE("of several that fail, the lowest rank is told, and exceptions of any type pass") {
  const auto error = run_fails(3, [](Communicator& comm) {
    if (comm.rank() != 0) throw Error(ErrorCode::kConfig, std::to_string(comm.rank()));
    comm.barrier();
  });
  REQUIRE(error);
  CHECK(error->message() == "1");
  CHECK_THROWS_AS(run_embedded(2, [](Communicator&) { throw std::out_of_range("far"); }),
                  std::out_of_range);
  CHECK_THROWS_AS(run_embedded(2, [](Communicator&) { throw 7; }), int);
}

TEST_CASE("where the system refuses a rank its thread, none begins, and all end") {
  for (const int allowed : {0, 1, 3}) {
    CAPTURE(allowed);
    std::atomic<int> begun = 0;
    std::optional<Error> error;
    {
      const testing::RefusedThreads refused(allowed);
      error = run_fails(4, [&](Communicator& comm) {
        ++begun;
        comm.barrier();
      });
    }
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kLimit);
    CHECK(error->message() == "the system refused a thread for each of 4 ranks");
    CHECK(begun == 0);
  }
  CHECK_NOTHROW(run_embedded(4, [](Communicator& comm) { comm.barrier(); }));
}

TEST_CASE("a rank that ends early is missed by name") {
  const auto error = run_fails(3, [](Communicator& comm) {
    if (comm.rank() != 1) comm.all_gather("x");
  });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPeerLost);
  CHECK(error->message() == "process 1 of 3 ended before its share of all_gather");
}

TEST_CASE("a rank that hangs is given up after the deadline, by name") {
  std::atomic<int> told = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto error = run_fails(3, [&](Communicator& comm) {
    comm.set_deadline(milliseconds(10'000), milliseconds(60));
    comm.barrier();
    if (comm.rank() == 2) {
      while (told < 2) std::this_thread::yield();
      return;
    }
    try {
      comm.broadcast(2, "");
    } catch (const Error& lost) {
      ++told;
      CHECK(lost.message() == "process 2 of 3 gave no sign of itself for 0.06 s in broadcast");
      throw;
    }
  });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPeerLost);
  CHECK(told == 2);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("who waits for one that waits for a third does not blame it") {
  std::atomic<int> told = 0;
  const auto error = run_fails(4, [&](Communicator& comm) {
    comm.set_deadline(milliseconds(10'000), milliseconds(200));
    comm.barrier();
    if (comm.rank() == 3) {
      while (told < 3) std::this_thread::yield();
      return;
    }
    const auto lost = testing::error_of([&] { return comm.receive(comm.rank() + 1); });
    REQUIRE(lost);
    CHECK(lost->message() == "process 3 of 4 gave no sign of itself for 0.2 s in receive");
    ++told;
  });
  CHECK_FALSE(error);
}

TEST_CASE("two that wait for each other end") {
  const auto error = run_fails(2, [&](Communicator& comm) {
    comm.set_deadline(milliseconds(100), milliseconds(100));
    comm.receive(1 - comm.rank());
  });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPeerLost);
}

TEST_CASE("an abort ends those who wait, in every part of a split, and whatever begins later") {
  std::atomic<int> ended = 0;
  run_embedded(4, [&](Communicator& comm) {
    const auto part = comm.split(comm.rank() % 2, 0);
    if (comm.rank() == 3) {
      for (int other = 0; other < 3; ++other) CHECK(comm.receive(other) == "ready");
      Error error(ErrorCode::kNoSpace, "enough");
      part->abort(error);
    } else {
      comm.send(3, "ready");
    }
    // No message arrives: rank 3 does not send, and a receive from it waits.
    for (int attempt = 0; attempt < 2; ++attempt) {
      const auto lost = testing::error_of([&] { return comm.receive((comm.rank() + 1) % 4); });
      ended += lost && lost->code() == ErrorCode::kNoSpace && lost->message() == "enough" &&
               testing::has_note(*lost, "process", "3 of 4");
    }
    CHECK_ERROR(kNoSpace, part->all_gather("x"));
    CHECK(comm.stop_was_raised());
  });
  CHECK(ended == 8);
}

TEST_CASE("a stop reaches every rank, whoever raises it, and collectives still work") {
  std::atomic<int> heard = 0;
  run_embedded(3, [&](Communicator& comm) {
    if (comm.rank() == 1) comm.raise_stop();
    while (!comm.stop_was_raised()) std::this_thread::yield();
    heard += comm.all_gather("after").size() == 3;
  });
  CHECK(heard == 3);
}

TEST_CASE("an interruption ends ranks that wait for messages, and is told as one") {
  for (const int size : {2, 5}) {
    for (const bool before : {true, false}) {
      CAPTURE(size);
      CAPTURE(before);
      const auto error = testing::interrupted(before, [&] {
        run_embedded(size, [&](Communicator& comm) {
          comm.set_deadline(milliseconds(10'000), milliseconds(10'000));
          comm.receive((comm.rank() + 1) % size);
        });
      });
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::kInterrupted);
    }
  }
}

/// Times that threads of this process have gone to sleep.
long sleeps() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

TEST_CASE("a message wakes the rank that it is for, and no other") {
  constexpr int kRanks = 32;
  constexpr int kRounds = 40;
  const long before = sleeps();
  run_embedded(kRanks, [](Communicator& comm) {
    const int from = (comm.rank() + kRanks - 1) % kRanks;
    for (int round = 0; round < kRounds; ++round) {
      if (comm.rank() != 0) comm.receive(from);
      comm.send((comm.rank() + 1) % kRanks, "token");
      if (comm.rank() == 0) comm.receive(from);
    }
  });
  CHECK(sleeps() - before < 10L * kRanks * kRounds);
}

TEST_CASE("arguments out of range are refused") {
  run_embedded(2, [](Communicator& comm) {
    CHECK_ERROR(kInternal, comm.receive(2));
    CHECK_ERROR(kInternal, comm.receive(-1));
    CHECK_ERROR(kInternal, comm.receive(comm.rank()));
    CHECK_ERROR(kInternal, comm.broadcast(2, ""));
    CHECK_ERROR(kInternal, comm.all_to_all(Texts(3)));
    const std::vector<double> values(3);
    CHECK_ERROR(kInternal, reduce_scatter(comm, std::span(values), std::vector<size_t>{1, 1}));
    CHECK_ERROR(kInternal, reduce_scatter(comm, std::span(values), std::vector<size_t>{2, 2}));
  });
}

TEST_CASE("ranks that give numbers of values that differ are named") {
  const auto error = run_fails(2, [](Communicator& comm) {
    std::vector<float> values(comm.rank() == 0 ? 2U : 3U);
    all_reduce<float>(comm, values);
  });
  REQUIRE(error);
  // Both detect it, and the first one to do so ends the other.
  const bool at_first = error->message() == "all_reduce: process 1 gave 12 bytes, expected 8";
  const bool at_second = error->message() == "all_reduce: process 0 gave 8 bytes, expected 12";
  CHECK((at_first || at_second));
}

}  // namespace
}  // namespace shardtool::comm
