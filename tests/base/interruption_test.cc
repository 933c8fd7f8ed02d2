#include "lib/base/interruption.h"

#include <doctest/doctest.h>

#include "lib/base/threads.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace std::chrono_literals;

TEST_CASE("a flag ends the work of its scope, of threads that are started there, and no other") {
  std::atomic<bool> flag = false;
  check_interrupted();
  {
    const Interruptible scope(&flag);
    check_interrupted();
    std::vector<std::jthread> threads;
    std::atomic<bool> ends = false;
    const auto work = [&ends] {
      ends = testing::error_of([] { check_interrupted(); }).has_value();
    };
    flag = true;
    CHECK_ERROR(kInterrupted, (check_interrupted(), 0));
    REQUIRE(start_thread(threads, work));
    threads.clear();
    CHECK(ends);
    {
      const Interruptible none(nullptr);
      check_interrupted();
      REQUIRE(start_thread(threads, work));
      threads.clear();
      CHECK_FALSE(ends);
    }
    CHECK_ERROR(kInterrupted, (check_interrupted(), 0));
  }
  check_interrupted();
}

TEST_CASE("work with patience goes on after its flag was set until it has waited for so long") {
  std::atomic<bool> flag = false;
  const Interruptible scope(&flag, 1s);
  check_interrupted(2s);
  flag = true;
  check_interrupted();
  check_interrupted(999ms);
  CHECK_ERROR(kInterrupted, (check_interrupted(1s), 0));
  CHECK_ERROR(kInterrupted, (check_interrupted(), 0));
}
