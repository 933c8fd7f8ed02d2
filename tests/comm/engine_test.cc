#include "lib/comm/engine.h"

#include <doctest/doctest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <iostream>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/comm/embedded.h"
#include "tests/comm/launched.h"
#include "tests/comm/laws.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

// Engines with several processes.
struct Tcp {
  static constexpr const char* kName = "tcp";
};
struct Mpi {
  static constexpr const char* kName = "mpi";
};
TYPE_TO_STRING(Tcp);
TYPE_TO_STRING(Mpi);

namespace shardtool::comm {
namespace {

using Texts = std::vector<std::string>;

/// Prints the reason if the engine cannot run.
template <class Processes>
bool can_run() {
  const std::string reason = reason_to_skip(Processes::kName);
  if (!reason.empty()) std::cout << "SKIPPED: " << reason << "\n";
  return reason.empty();
}

Texts embedded_digests(int size, std::uint64_t seed) {
  Texts all(static_cast<size_t>(size));
  run_embedded(size, [&](Communicator& comm) {
    all[static_cast<size_t>(comm.rank())] = keep_laws(comm, seed);
  });
  return all;
}

/// True if a text is what one rank of three may report about the last one.
bool names_the_last(const std::string& said, const std::string& expected) {
  return said == "process 2 of 3 " + expected;
}

TEST_CASE_TEMPLATE("processes keep the laws, and their digests are those of the embedded engine",
                   Processes, Tcp, Mpi) {
  if (!can_run<Processes>()) return;
  const std::string engine = Processes::kName;
  for (int size = 1; size <= 4; ++size) {
    const Launched launched = launch(engine, size, "laws", 100 + size);
    CAPTURE(size);
    CHECK(launched.status == 0);
    CHECK(launched.said == embedded_digests(size, static_cast<std::uint64_t>(100 + size)));
  }
}

TEST_CASE_TEMPLATE("what one process throws, all throw, with its status and its name", Processes,
                   Tcp, Mpi) {
  if (!can_run<Processes>()) return;
  const std::string engine = Processes::kName;
  const Launched launched = launch(engine, 3, "throws");
  CHECK(launched.status == 3);  // mpirun: the first status; else the worst
  for (const std::string& said : launched.said) CHECK(said == "no heads (process 2 of 3)");
  CHECK(launched.seconds < 20);
}

TEST_CASE_TEMPLATE("an abort ends all, with its reason", Processes, Tcp, Mpi) {
  if (!can_run<Processes>()) return;
  const std::string engine = Processes::kName;
  const Launched launched = launch(engine, 3, "aborts");
  CHECK(launched.status == 5);
  CHECK(launched.said[0] == "enough (process 2 of 3)");
  CHECK(launched.said[1] == "enough (process 2 of 3)");
  CHECK(launched.seconds < 20);
}

TEST_CASE_TEMPLATE("a process that ends early is named", Processes, Tcp, Mpi) {
  if (!can_run<Processes>()) return;
  const std::string engine = Processes::kName;
  const Launched launched = launch(engine, 3, "ends");
  CHECK(launched.status == 6);
  CHECK(names_the_last(launched.said[0], "ended without a word"));
  CHECK(names_the_last(launched.said[1], "ended without a word"));
  CHECK(launched.seconds < 20);
}

TEST_CASE_TEMPLATE("a process that computes longer than the deadline is waited for", Processes, Tcp,
                   Mpi) {
  if (!can_run<Processes>()) return;
  const Launched launched = launch(Processes::kName, 3, "computes", 5);
  for (const std::string& said : launched.said) CHECK(said == "went on");
  CHECK(launched.status == 0);
}

TEST_CASE_TEMPLATE("a frozen process is named after the deadline, and ends too under mpirun",
                   Processes, Tcp, Mpi) {
  if (!can_run<Processes>()) return;
  const std::string engine = Processes::kName;
  // Over TCP no launcher ends the frozen process.
  const Launched launched = launch(engine, 3, "freezes", engine == "mpi" ? 50 : 2);
  CHECK(names_the_last(launched.said[0], "gave no sign of itself for 0.5 s in all_gather"));
  CHECK(names_the_last(launched.said[1], "gave no sign of itself for 0.5 s in all_gather"));
  CHECK(launched.status == 6);
  CHECK(launched.seconds < 20);
}

TEST_CASE_TEMPLATE("who waits for one that waits for a third does not blame it", Processes, Tcp,
                   Mpi) {
  if (!can_run<Processes>()) return;
  const std::string engine = Processes::kName;
  const Launched launched = launch(engine, 3, "stalls", engine == "mpi" ? 50 : 2);
  CHECK(names_the_last(launched.said[0], "gave no sign of itself for 0.5 s in receive"));
  CHECK(names_the_last(launched.said[1], "gave no sign of itself for 0.5 s in receive"));
  CHECK(launched.status == 6);
}

TEST_CASE_TEMPLATE("a process that exits in the middle ends the run", Processes, Tcp, Mpi) {
  if (!can_run<Processes>()) return;
  const std::string engine = Processes::kName;
  const Launched launched = launch(engine, 3, "exits");
  CHECK(launched.status != 0);
  CHECK(launched.seconds < 20);
  // mpirun kills the others before they can report.
  if (engine != "tcp") return;
  CHECK(launched.status == 6);
  CHECK(names_the_last(launched.said[0], "ended without a word"));
  CHECK(names_the_last(launched.said[1], "ended without a word"));
}

/// Errors of the processes of a launch of which some fail before they meet: a bit for each.
std::vector<std::optional<Error>> errors_before_meeting(int size, unsigned failing) {
  const test::TempFolder folder;
  std::vector<std::optional<Error>> all(static_cast<size_t>(size));
  std::vector<std::jthread> processes;
  for (int rank = 0; rank < size; ++rank) {
    processes.emplace_back([&, rank] {
      EngineChoice choice;
      choice.launch = Launch{"mpirun", rank, size, "job"};
      choice.meeting.folder = folder.path();
      choice.meeting_time = std::chrono::seconds(20);
      all[static_cast<size_t>(rank)] = testing::error_of([&] {
        before_meeting(choice, [&] {
          if ((failing >> rank & 1U) != 0)
            throw Error(ErrorCode::kUnreadable, std::to_string(rank));
        });
        return connect(choice)->size();
      });
    });
  }
  processes.clear();
  return all;
}

TEST_CASE("of those that fail before the processes meet, all have the error of the lowest") {
  for (int size = 2; size <= 3; ++size) {
    for (unsigned failing = 0; failing < 1U << size; ++failing) {
      CAPTURE(size);
      CAPTURE(failing);
      const std::string first = std::to_string(std::countr_zero(failing));
      for (const auto& error : errors_before_meeting(size, failing)) {
        REQUIRE(error.has_value() == (failing != 0));
        if (!error) continue;
        CHECK(error->code() == ErrorCode::kUnreadable);
        CHECK(error->message() == first);
        CHECK(testing::has_note(*error, "process", first + " of " + std::to_string(size)));
      }
    }
  }
}

/// Errors of the processes of a launch of which one is interrupted before it meets the others,
/// which have begun.
std::vector<std::optional<Error>> errors_of_interrupted(int size, int interrupted) {
  const test::TempFolder folder;
  const std::atomic<bool> signalled = true;
  std::atomic<int> begun = 0;
  std::vector<std::optional<Error>> all(static_cast<size_t>(size));
  std::vector<std::jthread> processes;
  for (int rank = 0; rank < size; ++rank) {
    processes.emplace_back([&, rank] {
      EngineChoice choice;
      choice.launch = Launch{"mpirun", rank, size, "job"};
      choice.meeting.folder = folder.path();
      choice.meeting_time = std::chrono::seconds(20);
      const Interruptible scope(rank == interrupted ? &signalled : nullptr);
      ++begun;
      while (rank == interrupted && begun < size) std::this_thread::yield();
      all[static_cast<size_t>(rank)] = testing::error_of([&] { return connect(choice)->size(); });
    });
  }
  processes.clear();
  return all;
}

TEST_CASE("whichever process is interrupted while they meet, all have its interruption") {
  for (int size = 2; size <= 4; ++size) {
    for (int interrupted = 0; interrupted < size; ++interrupted) {
      CAPTURE(size);
      CAPTURE(interrupted);
      for (const auto& error : errors_of_interrupted(size, interrupted)) {
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::kInterrupted);
        CHECK(testing::has_note(*error, "process",
                                std::to_string(interrupted) + " of " + std::to_string(size)));
      }
    }
  }
}

TEST_CASE("what fails before a meeting to which nobody comes is told all the same") {
  const test::TempFolder folder;
  for (const int rank : {0, 1}) {
    EngineChoice choice;
    choice.launch = Launch{"mpirun", rank, 2, "job"};
    choice.meeting.folder = folder.path();
    choice.meeting_time = std::chrono::milliseconds(50);
    const auto error = testing::error_of([&] {
      before_meeting(choice, [] { throw Error(ErrorCode::kUnreadable, "no file"); });
      return 0;
    });
    REQUIRE(error);
    CHECK(error->message() == "no file");
    CHECK(error->is_leaderless() == (rank == 1));
  }
  const auto alone = testing::error_of([&] {
    before_meeting({}, [] { throw Error(ErrorCode::kUnreadable, "no file"); });
    return 0;
  });
  REQUIRE(alone);
  CHECK(alone->notes().empty());
}

TEST_CASE("engines have names, and no other") {
  for (const Engine engine : {Engine::kEmbedded, Engine::kTcp, Engine::kMpi}) {
    CHECK(engine_named(name_of(engine)) == engine);
  }
  CHECK_ERROR(kUsage, engine_named("gloo"));
  CHECK_ERROR(kUsage, connect({}));
}

TEST_CASE("a plugin that is missing or is none is named, with what the loader says") {
  const test::TempFolder folder;
  folder.write("none.so", "no library");
  for (const std::string file : {"missing.so", "none.so"}) {
    EngineChoice options;
    options.engine = Engine::kMpi;
    options.mpi_plugin = folder / file;
    CHECK_ERROR(kEngineMissing, found(options));
    const auto error = testing::error_of([&] { return connect(options); });
    REQUIRE(error);
    CHECK(error->exit_status() == 6);
    CHECK(error->message() == "the MPI plugin cannot be opened");
    REQUIRE(error->notes().size() == 1);
    CHECK(error->notes()[0].second.find(options.mpi_plugin) != std::string::npos);
  }
  EngineChoice libc;
  libc.engine = Engine::kMpi;
  libc.mpi_plugin = "libc.so.6";
  const auto error = testing::error_of([&] { return connect(libc); });
  REQUIRE(error);
  CHECK(error->message() == "libc.so.6 has no shardtool_mpi_plugin");
}

TEST_CASE("what an engine would run on is found without starting it") {
  EngineChoice options;
  CHECK(found(options) == "threads of this process");
  options.engine = Engine::kTcp;
  CHECK(found(options).starts_with("reachable as "));
  options.engine = Engine::kMpi;
  options.mpi_plugin = SHARDTOOL_TEST_MPI_PLUGIN;
  if (options.mpi_plugin.empty()) {
    std::cout << "SKIPPED: no MPI when this was built\n";
    return;
  }
  CAPTURE(found(options));
  CHECK(found(options).find("MPI") != std::string::npos);
  CHECK(found(options).ends_with(" through " + options.mpi_plugin));
}

TEST_CASE("another number of processes than ranks is refused, threads are as many as asked for") {
  EngineChoice options;
  options.engine = Engine::kTcp;
  CHECK_ERROR(kUsage, (run_ranks(options, 2, [](Communicator&) {}), 0));
  int seen = 0;
  run_ranks(options, 1, [&](Communicator& comm) { seen = comm.size(); });
  CHECK(seen == 1);
  run_ranks({}, 3, [&](Communicator& comm) {
    if (comm.rank() == 2) seen = comm.size();
  });
  CHECK(seen == 3);
}

}  // namespace
}  // namespace shardtool::comm
