#include "lib/comm/agreement.h"

#include <doctest/doctest.h>

#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

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

TEST_CASE("what ends a run in one process is thrown in all, wherever they are") {
  using Step = std::function<void(Communicator&)>;
  const std::vector<Step> waits{
      [](Communicator& comm) { comm.all_gather("x"); },
      [](Communicator& comm) { comm.receive((comm.rank() + 1) % comm.size()); },
      [](Communicator& comm) {
        while (true) comm.require_others();
      },
      [](Communicator& comm) { comm.split(0, 0)->barrier(); }};
  for (int size = 2; size <= 4; ++size) {
    for (int failing = 0; failing < size; ++failing) {
      for (size_t wait = 0; wait < waits.size(); ++wait) {
        CAPTURE(size);
        CAPTURE(failing);
        CAPTURE(wait);
        const ErrorCode code = error_table()[static_cast<size_t>(size * failing) + wait].code;
        std::vector<std::optional<Error>> all(static_cast<size_t>(size));
        run_processes(size, [&](Communicator& comm) {
          all[static_cast<size_t>(comm.rank())] = testing::error_of([&] {
            run_or_abort(comm, [&] {
              comm.barrier();
              if (comm.rank() == failing) throw Error(code, "no heads");
              waits[wait](comm);
            });
            return 0;
          });
        });
        for (const auto& error : all) {
          REQUIRE(error);
          CHECK(error->code() == code);
          CHECK(error->message() == "no heads");
          CHECK(testing::has_note(*error, "process",
                                  std::to_string(failing) + " of " + std::to_string(size)));
        }
      }
    }
  }
}

TEST_CASE("an exception of another type ends the others with the status of its process") {
  for (const bool of_memory : {true, false}) {
    std::vector<std::optional<Error>> all(2);
    run_processes(2, [&](Communicator& comm) {
      try {
        run_or_abort(comm, [&] {
          if (comm.rank() == 1 && of_memory) throw std::bad_alloc();
          if (comm.rank() == 1) throw std::out_of_range("far");
          comm.barrier();
        });
      } catch (const Error& error) {
        all[static_cast<size_t>(comm.rank())] = error;
      } catch (const std::exception&) {
        CHECK(comm.rank() == 1);
      }
    });
    REQUIRE(all[0]);
    CHECK(all[0]->code() == (of_memory ? ErrorCode::kLimit : ErrorCode::kInternal));
    CHECK(all[0]->message() == (of_memory ? "the system refused memory" : "far"));
    CHECK(testing::has_note(*all[0], "process", "1 of 2"));
    CHECK_FALSE(all[1]);
  }
}

TEST_CASE("a process on its own throws what it throws") {
  SoloCommunicator solo;
  const auto error = testing::error_of([&] {
    all_do(solo, [] { throw Error(ErrorCode::kNoSpace, "full"); });
    return 0;
  });
  REQUIRE(error);
  CHECK(error->notes().empty());
  const auto aborted = testing::error_of([&] {
    run_or_abort(solo, [] { throw Error(ErrorCode::kNoSpace, "full"); });
    return 0;
  });
  REQUIRE(aborted);
  CHECK(aborted->notes().empty());
}

}  // namespace
}  // namespace shardtool::comm
