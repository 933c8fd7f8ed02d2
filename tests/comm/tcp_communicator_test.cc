#include "lib/comm/tcp/tcp_communicator.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/comm/tcp/socket.h"
#include "tests/comm/interrupted.h"
#include "tests/comm/laws.h"
#include "tests/comm/threads.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

using std::chrono::milliseconds;
using test::TempFolder;
using Texts = std::vector<std::string>;

TEST_CASE("processes over TCP keep the laws of a communicator") {
  for (int size = 1; size <= 5; ++size) {
    for (const std::uint64_t seed : {11U, 12U}) {
      CAPTURE(size);
      CAPTURE(seed);
      CHECK_NOTHROW(check_laws(run_processes, size, seed));
    }
  }
}

TEST_CASE("everybody gets what everybody gave, in the order of ranks, of any length") {
  const std::string large(5 << 20, 'x');
  std::atomic<int> right = 0;
  run_processes(4, [&](Communicator& comm) {
    const std::string mine = comm.rank() == 1   ? ""
                             : comm.rank() == 2 ? large
                                                : std::to_string(comm.rank());
    const Texts expected{"0", "", large, "3"};
    right += comm.all_gather(mine) == expected;
    right += comm.all_gather(mine) == expected;
    right += comm.size() == 4;
  });
  CHECK(right == 12);
}

TEST_CASE("a stop reaches every process, whoever raises it, and collectives still work") {
  for (int raiser = 0; raiser < 3; ++raiser) {
    std::atomic<int> heard = 0;
    run_processes(3, [&](Communicator& comm) {
      if (comm.rank() == raiser) comm.raise_stop();
      while (!comm.stop_was_raised()) std::this_thread::yield();
      heard += comm.all_gather("after").size() == 3;
    });
    CHECK(heard == 3);
  }
}

TEST_CASE("a process that is killed is missed by the others at once") {
  for (const int killed : {0, 2}) {
    CAPTURE(killed);
    const TempFolder folder;
    const pid_t child = ::fork();
    if (child == 0) {
      const auto comm = meet(folder / "meeting", killed, 3, std::chrono::seconds(20));
      ::kill(::getpid(), SIGKILL);
    }
    std::atomic<int> missed = 0;
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < 3; ++rank) {
        if (rank == killed) continue;
        threads.emplace_back([&, rank] {
          const auto comm = meet(folder / "meeting", rank, 3, std::chrono::seconds(20));
          const auto error = testing::error_of([&] { return comm->all_gather("here"); });
          missed += error && error->code() == ErrorCode::kPeerLost;
          missed += comm->stop_was_raised();
        });
      }
    }
    CHECK(missed == 4);
    ::waitpid(child, nullptr, 0);
  }
}

/// Errors of three processes; the last one runs `last`.
std::vector<std::optional<Error>> ends(const std::function<void(Communicator&)>& last,
                                       const std::function<void(Communicator&)>& others) {
  std::vector<std::optional<Error>> all(3);
  run_processes(3, [&](Communicator& comm) {
    comm.set_deadline(std::chrono::seconds(20), std::chrono::seconds(20));
    all[static_cast<size_t>(comm.rank())] = testing::error_of([&] {
      comm.barrier();
      comm.rank() == 2 ? last(comm) : others(comm);
      return 0;
    });
  });
  return all;
}

TEST_CASE("a machine that vanishes is noticed within a minute, whether it owes an answer or not") {
  const Listener listener = listen();
  const Socket one = connect({"127.0.0.1", listener.addresses.front().port},
                             Deadline::clock::now() + std::chrono::seconds(20));
  REQUIRE(one.is_open());
  std::optional<Socket> taken;
  while (!taken) taken = accept(listener.sockets.front());
  const Socket& other = *taken;
  for (const Socket* socket : {&one, &other}) {
    REQUIRE(socket->is_open());
    const auto option = [&](int name) {
      int value = 0;
      socklen_t size = sizeof value;
      REQUIRE(getsockopt(socket->fd(), IPPROTO_TCP, name, &value, &size) == 0);
      return value;
    };
    CHECK(option(TCP_KEEPIDLE) + option(TCP_KEEPCNT) * option(TCP_KEEPINTVL) <= 60);
    CHECK(option(TCP_USER_TIMEOUT) > 0);
    CHECK(option(TCP_USER_TIMEOUT) <= 60'000);
  }
}

TEST_CASE("an abort ends whoever waits, with its reason, whomever it waits for") {
  const auto all = ends(
      [](Communicator& comm) {
        Error error(ErrorCode::kConfig, "no heads");
        comm.abort(error);
      },
      [](Communicator& comm) { comm.receive(1 - comm.rank()); });
  for (const int rank : {0, 1}) {
    const auto& error = all[static_cast<size_t>(rank)];
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kConfig);
    CHECK(error->message() == "no heads");
    CHECK(testing::has_note(*error, "process", "2 of 3"));
  }
}

TEST_CASE("a process that ends early is missed by all, by name") {
  const auto all = ends([](Communicator&) {}, [](Communicator& comm) { comm.all_gather("x"); });
  for (const int rank : {0, 1}) {
    REQUIRE(all[static_cast<size_t>(rank)]);
    CHECK(all[static_cast<size_t>(rank)]->message() == "process 2 of 3 ended without a word");
  }
}

TEST_CASE("a frozen process is given up after the deadline, in sending and in receiving") {
  const std::string large(64 << 20, 'x');  // more than the system buffers
  for (const bool sends : {false, true}) {
    const TempFolder folder;
    const pid_t child = ::fork();
    if (child == 0) {
      const auto comm = meet(folder / "meeting", 2, 3, std::chrono::seconds(20));
      ::raise(SIGSTOP);
    }
    std::vector<std::optional<Error>> lost(2);
    {
      std::vector<std::jthread> threads;
      for (const int rank : {0, 1}) {
        threads.emplace_back([&, rank] {
          const auto comm = meet(folder / "meeting", rank, 3, std::chrono::seconds(20));
          comm->set_deadline(milliseconds(200), milliseconds(200));
          lost[static_cast<size_t>(rank)] = testing::error_of([&] {
            if (sends) comm->send(2, large);
            return comm->receive(2);
          });
        });
      }
    }
    for (const auto& error : lost) {
      REQUIRE(error);
      CHECK(error->message() == std::string("process 2 of 3 gave no sign of itself for 0.2 s in ") +
                                    (sends ? "send" : "receive"));
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

TEST_CASE("a process that computes longer than the deadline is waited for") {
  run_processes(3, [&](Communicator& comm) {
    comm.set_deadline(std::chrono::seconds(1), std::chrono::seconds(1));
    for (int round = 0; round < 2; ++round) {
      if (comm.rank() == round) std::this_thread::sleep_for(std::chrono::seconds(3));
      CHECK(comm.all_gather("here").size() == 3);
    }
  });
}

TEST_CASE("nobody is joined to itself where nobody listens") {
  // The system now and then takes the port that is sought for the seeking end. Linux gives such
  // ends ports of the other parity than those at which programs listen.
  constexpr int kAttempts = 60'000;
  const int port = listen().addresses.front().port ^ 1;
  int joined = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Socket socket = connect({"127.0.0.1", port}, Deadline::clock::now());
    joined += socket.is_open() ? 1 : 0;
  }
  CHECK(joined == 0);
}

TEST_CASE("two that wait for each other end, although each of them is alive") {
  const auto error = testing::error_of([&] {
    run_processes(2, [&](Communicator& comm) {
      comm.set_deadline(milliseconds(100), milliseconds(100));
      comm.receive(1 - comm.rank());
    });
    return 0;
  });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPeerLost);
}

TEST_CASE("a process that sends what no process sends ends the run") {
  const TempFolder folder;
  std::optional<Error> error;
  {
    const std::jthread first([&] {
      const auto comm = meet(folder / "meeting", 0, 2, std::chrono::seconds(20));
      error = testing::error_of([&] { return comm->receive(1); });
    });
    const auto peers = connect_processes(folder / "meeting", 1, 2, std::chrono::seconds(20));
    CHECK(peers[0].send('Z' + std::string(16, '\0'),
                        Deadline::clock::now() + std::chrono::seconds(20)));
  }
  REQUIRE(error);
  CHECK(error->message() == "process 1 of 2 sent an invalid message");
}

TEST_CASE("those who wait in vain give up and say for whom") {
  const TempFolder folder;
  const auto first =
      testing::error_of([&] { return meet(folder / "meeting", 0, 3, milliseconds(50)); });
  REQUIRE(first);
  CHECK(first->code() == ErrorCode::kPeerLost);
  CHECK(first->message() == "only 1 of 3 processes have begun");
  CHECK(std::filesystem::is_empty(folder.path()));
  const auto other =
      testing::error_of([&] { return meet(folder / "meeting", 1, 3, milliseconds(50)); });
  REQUIRE(other);
  CHECK(other->message() == "process 0 of 3 could not be reached");
}

TEST_CASE("the file of a launch that is gone does not mislead") {
  const TempFolder folder;
  folder.write("meeting", "00112233445566778899aabbccddeeff\n127.0.0.1 9\nnonsense");
  REQUIRE(::chmod((folder / "meeting").c_str(), 0600) == 0);
  std::atomic<int> met = 0;
  {
    std::vector<std::jthread> threads;
    for (const int rank : {1, 0}) {
      threads.emplace_back([&, rank] {
        met += meet(folder / "meeting", rank, 2, std::chrono::seconds(20))->size();
      });
      std::this_thread::sleep_for(milliseconds(30));
    }
  }
  CHECK(met == 4);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a launch that gives up leaves the file of the next one, and none of its own") {
  const TempFolder folder;
  std::atomic<bool> gives_up = false;
  {
    const std::jthread given_up([&] {
      const Interruptible scope(&gives_up);
      CHECK_ERROR(kInterrupted, meet(folder / "meeting", 0, 2, std::chrono::seconds(20)));
    });
    while (!std::filesystem::exists(folder / "meeting")) std::this_thread::yield();
    folder.write("next", "word\n127.0.0.1 9\n");
    std::filesystem::rename(folder / "next", folder / "meeting");
    gives_up = true;
  }
  CHECK(std::filesystem::exists(folder / "meeting"));
}

TEST_CASE("what a launch that was killed left half written is replaced") {
  const TempFolder folder;
  folder.write("meeting.new", "half");
  folder.write("meeting", "00112233445566778899aabbccddeeff\n127.0.0.1 9\n");
  std::atomic<int> met = 0;
  {
    std::vector<std::jthread> threads;
    for (const int rank : {1, 0}) {
      threads.emplace_back([&, rank] {
        met += meet(folder / "meeting", rank, 2, std::chrono::seconds(20))->size();
      });
    }
  }
  CHECK(met == 4);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a file that another could have written leads nowhere, and the reason is told") {
  const TempFolder folder;
  folder.write("meeting", "00112233445566778899aabbccddeeff\n127.0.0.1 9\n");
  REQUIRE(::chmod((folder / "meeting").c_str(), 0666) == 0);
  const auto error =
      testing::error_of([&] { return meet(folder / "meeting", 1, 2, milliseconds(50)); });
  REQUIRE(error);
  REQUIRE(error->notes().size() == 2);
  CHECK(error->notes()[1].second ==
        "the file is not believed: others may use it: its mode is 0666, expected 0600");
}

TEST_CASE("an interruption ends a wait for a message, and the process can say so to the others") {
  run_processes(2, [](Communicator& comm) {
    comm.set_deadline(milliseconds(20'000), milliseconds(20'000));
    for (const bool before : {true, false}) {
      if (comm.rank() == 1) {
        CHECK(comm.receive(0) == "went on");
        continue;
      }
      const auto error = testing::interrupted(before, [&] { comm.receive(1); });
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::kInterrupted);
      comm.send(1, "went on");
    }
  });
}

}  // namespace
}  // namespace shardtool::comm
