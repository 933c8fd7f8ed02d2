#include "shardtool/comm/tcp_communicator.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>

#include "shardtool/base/error.h"
#include "shardtool/comm/socket.h"
#include "tests/comm/threads.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

using test::TempFolder;
using std::chrono::milliseconds;
using Texts = std::vector<std::string>;

TEST_CASE("everybody gets what everybody gave, in the order of ranks, of any length") {
  const std::string large(5 << 20, 'x');
  std::atomic<int> right = 0;
  run_processes(4, [&](Communicator& comm) {
    const std::string mine =
        comm.rank() == 1 ? "" : comm.rank() == 2 ? large : std::to_string(comm.rank());
    const Texts expected{"0", "", large, "3"};
    right += comm.all_gather(mine) == expected;
    right += comm.gather(mine) == (comm.rank() == 0 ? expected : Texts{});
    right += comm.all_gather(mine) == expected;
    right += comm.size() == 4;
  });
  CHECK(right == 16);
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

TEST_CASE("whoever does not know the word, or has another launch, is not let in") {
  const TempFolder folder;
  std::optional<Error> error;
  {
    const std::jthread first([&] {
      error = testing::error_of(
          [&] { return meet(folder / "meeting", 0, 2, milliseconds(3000)); });
    });
    while (!std::filesystem::exists(folder / "meeting")) std::this_thread::yield();
    struct stat status {};
    REQUIRE(::stat((folder / "meeting").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600U);
    std::ifstream file(folder / "meeting");
    std::string word;
    Address address;
    file >> word >> address.host >> address.port;
    for (const std::string& greeting :
         {std::string(word.size(), '0') + "        1        2", word + "        1        5",
          word + "        0        2", word + "        2        2", word + "        x        2"}) {
      const Socket stranger = connect(address, milliseconds(1000));
      REQUIRE(stranger.is_open());
      CHECK(stranger.send(greeting));
      CHECK_FALSE(stranger.receive(1));
    }
  }
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPeerLost);
}

}  // namespace
}  // namespace shardtool::comm
