#include "lib/comm/facts.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "lib/comm/embedded.h"
#include "lib/comm/launch.h"
#include "tests/comm/threads.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

using Errors = std::vector<std::optional<Error>>;

/// Error of each process, by rank, if these are their facts.
Errors compared(const std::vector<Facts>& facts) {
  Errors all(facts.size());
  run_embedded(static_cast<int>(facts.size()), [&](Communicator& comm) {
    const auto rank = static_cast<size_t>(comm.rank());
    all[rank] = testing::error_of([&] {
      require_same(comm, facts[rank], Error(ErrorCode::kUsage, "not the same"));
      return 0;
    });
  });
  return all;
}

TEST_CASE("all processes throw exactly where one has other facts, and they name it") {
  CHECK(rc::check([] {
    const auto size = *rc::gen::inRange<size_t>(1, 6);
    std::vector<Facts> facts(size, {{"a", "0"}, {"b", ""}});
    size_t first = size;
    for (size_t rank = size - 1; rank > 0; --rank) {
      if (*rc::gen::inRange(0, 3) > 0) continue;
      facts[rank][0].second = std::to_string(rank);
      first = rank;
    }
    for (const auto& error : compared(facts)) {
      RC_ASSERT(error.has_value() == (first < size));
      if (!error) continue;
      RC_ASSERT(error->notes().at(0).first == "process 0");
      RC_ASSERT(error->notes().at(0).second == "a 0");
      RC_ASSERT(error->notes().at(1).first == "process " + std::to_string(first));
      RC_ASSERT(error->notes().at(1).second == "a " + std::to_string(first));
    }
  }));
}

TEST_CASE("what one has and the other lacks is named on both sides") {
  const auto errors = compared({{{"--force", ""}, {"--tp", "2"}, {"SRC", "x"}},
                                {{"--tp", "4"}, {"SRC", "x"}, {"--seed", "1"}}});
  for (const auto& error : errors) {
    REQUIRE(error);
    CHECK(error->message() == "not the same");
    CHECK(error->notes().at(0).second == "--force, --tp 2, without --seed");
    CHECK(error->notes().at(1).second == "without --force, --tp 4, --seed 1");
  }
}

TEST_CASE("of many differences the first few are named, and how many processes differ") {
  Facts other;
  for (const char* name : {"a", "b", "c", "d", "e"}) other.emplace_back(name, "1");
  const auto errors = compared({{}, other, other});
  REQUIRE(errors[0]);
  CHECK(errors[0]->notes().at(1).second == "a 1, b 1, c 1, d 1, ...");
  CHECK(errors[0]->notes().at(2).second == "2 of 3 processes differ from process 0");
}

TEST_CASE("processes of a launch with different options are told which, over TCP, too") {
  Launch launch{"mpirun", 0, 3, "job"};
  launch.options = {{"--max-file-size", "1GB"}};
  Errors all(3);
  run_processes(3, [&](Communicator& comm) {
    Launch own = launch;
    if (comm.rank() == 2) own.options = {{"--max-file-size", "2GB"}};
    all[static_cast<size_t>(comm.rank())] = testing::error_of([&] {
      require_same_options(comm, own);
      return 0;
    });
  });
  for (const auto& error : all) {
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kUsage);
    CHECK(error->notes().at(0).second == "--max-file-size 1GB");
    CHECK(error->notes().at(1).first == "process 2");
    CHECK(error->notes().at(1).second == "--max-file-size 2GB");
  }
}

}  // namespace
}  // namespace shardtool::comm
