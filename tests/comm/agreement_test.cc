#include "lib/comm/agreement.h"

#include <doctest/doctest.h>

#include <mutex>

#include "lib/base/error.h"
#include "tests/comm/threads.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

/// Error of each process from an all_do with this part.
std::vector<std::optional<Error>> outcomes(int size, const std::function<void(int rank)>& part) {
  std::vector<std::optional<Error>> all(static_cast<size_t>(size));
  run_processes(size, [&](Communicator& comm) {
    all[static_cast<size_t>(comm.rank())] = testing::error_of([&] {
      all_do(comm, [&] { part(comm.rank()); });
      return 0;
    });
  });
  return all;
}

TEST_CASE("what works in every process is no error in any") {
  for (const auto& outcome : outcomes(3, [](int) {})) CHECK_FALSE(outcome);
}

TEST_CASE("what fails in one process fails in all, with everything that the error says") {
  const auto all = outcomes(4, [](int rank) {
    if (rank != 2) return;
    throw Error(ErrorCode::kNoSpace, "no space: \"left\"\n0 1 2")
        .at({"a file", 0, 0, {}})
        .tensor("layers.0")
        .note("label", "3 fields")
        .note("empty", "")
        .help("delete something")
        .help("or buy a disk");
  });
  for (const auto& outcome : all) {
    REQUIRE(outcome);
    CHECK(outcome->code() == ErrorCode::kNoSpace);
    CHECK(outcome->message() == "no space: \"left\"\n0 1 2");
    CHECK(outcome->place()->file == "a file");
    CHECK(outcome->tensor_name() == "layers.0");
    REQUIRE(outcome->notes().size() == 3);
    CHECK(outcome->notes()[0] == std::pair<std::string, std::string>("label", "3 fields"));
    CHECK(outcome->notes()[1].second.empty());
    CHECK(outcome->notes()[2] == std::pair<std::string, std::string>("process", "2 of 4"));
    CHECK(outcome->help_lines() == std::vector<std::string>{"delete something", "or buy a disk"});
  }
}

TEST_CASE("the error that made the others stop is told, not that they stopped") {
  const auto all = outcomes(3, [](int rank) {
    throw rank == 1 ? Error(ErrorCode::kWriteFailed, "the disk is broken")
                    : Error(ErrorCode::kInterrupted, "stopped");
  });
  for (const auto& outcome : all) CHECK(outcome->code() == ErrorCode::kWriteFailed);
  for (const auto& outcome :
       outcomes(2, [](int) { throw Error(ErrorCode::kInterrupted, "by the user"); })) {
    CHECK(outcome->code() == ErrorCode::kInterrupted);
  }
}

TEST_CASE("the others hear of a failure while they work") {
  std::mutex mutex;
  int stopped = 0;
  run_processes(3, [&](Communicator& comm) {
    const auto error = testing::error_of([&] {
      all_do(comm, [&] {
        if (comm.rank() == 1) throw Error(ErrorCode::kNoSpace, "full");
        while (!comm.stop_was_raised()) std::this_thread::yield();
        const std::lock_guard lock(mutex);
        ++stopped;
      });
      return 0;
    });
    CHECK(error);
  });
  CHECK(stopped == 2);
}

TEST_CASE("a process on its own throws what it throws") {
  SoloCommunicator solo;
  const auto error = testing::error_of([&] {
    all_do(solo, [] { throw Error(ErrorCode::kNoSpace, "full"); });
    return 0;
  });
  REQUIRE(error);
  CHECK(error->notes().empty());
}

}  // namespace
}  // namespace shardtool::comm
