// Runs to a store that a signal ends.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "lib/api/check.h"
#include "lib/base/interruption.h"
#include "lib/store/reader.h"
#include "tests/api/store/stored_model.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using namespace std::chrono_literals;

/// Flag that the next request of this number sets.
std::shared_ptr<const std::atomic<bool>> interrupt_at(ServedStore& store, int at) {
  const auto flag = std::make_shared<std::atomic<bool>>(false);
  store.delay([flag, at](int number) { *flag = *flag || number == at; });
  return flag;
}

/// Splits until the flag is set; returns the error.
std::optional<Error> split_until(const std::atomic<bool>& flag, const SplitOptions& options) {
  const Interruptible scope(&flag);
  return testing::error_of([&] { return api::split(options); });
}

SplitOptions split_of(const ModelOnStore& model) {
  SplitOptions options;
  options.source = model.remote();
  options.mapping.path = model.remote() + "/mapping.json";
  options.write.output = kOutput;
  options.write.resources.threads = 1;
  return options;
}

/// Number of interrupted runs by what they have left.
struct Left {
  int nothing = 0;
  int kept = 0;    ///< tensors for a later run
  int others = 0;  ///< the mark alone, or what was under way when the store was slow to delete
};

/// Interrupts a split at one of its requests, then `step` requests later, and so on. A second run
/// has the expected output each time.
Left interrupt_often(ServedStore& store, const SplitOptions& options, int step,
                     const std::map<std::string, std::string>& expected) {
  Left left;
  for (int at = 1;; at += step) {
    CAPTURE(at);
    store.clear_below("out");
    const auto flag = interrupt_at(store, at);
    const auto error = split_until(*flag, options);
    store.delay(nullptr);
    if (!error) return left;
    CHECK(error->code() == ErrorCode::kInterrupted);
    const bool is_clean = store.below("out").empty() && store.open_uploads() == 0;
    ++(error->is_resumable() ? left.kept : is_clean ? left.nothing : left.others);
    SplitOptions again = options;
    again.write.resume = error->is_resumable();
    api::split(again);
    CHECK((store.below("out") == expected));
    CHECK(store.open_uploads() == 0);
  }
}

TEST_CASE("a split to a store may be interrupted at any of its requests") {
  ModelOnStore model;
  const auto expected = model.split(model.remote());
  const Left left = interrupt_often(model.store(), split_of(model), 1, expected);
  MESSAGE(left.nothing, " times it left nothing, ", left.others, " times something");
  CHECK(left.nothing > left.others);
}

TEST_CASE("an interrupted split to a store keeps tensors that are finished") {
  LargeModel model;
  SplitOptions options = model.options(kOutput, 16 << 20);
  options.write.resources.threads = 1;
  CHECK(interrupt_often(model.store(), options, 6, model.expected()).kept > 3);
}

TEST_CASE("an interruption ends a split whose store answers no more, at any of its requests") {
  ModelOnStore model;
  for (const int at : {1, 2, 5, 9, 14, 20}) {
    CAPTURE(at);
    model.store().clear_below("out");
    model.store().disturb(
        [at](int number, test::PlayedAnswer& answer) { answer.hangs = number >= at; });
    std::atomic<bool> flag = false;
    const std::jthread signal([&flag] {
      std::this_thread::sleep_for(300ms);
      flag = true;
    });
    const auto begin = std::chrono::steady_clock::now();
    const auto error = split_until(flag, split_of(model));
    CHECK(std::chrono::steady_clock::now() - begin < 20s);
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kInterrupted);
  }
  model.store().clear();
}

TEST_CASE("a check whose requests an interruption cuts off has no findings of them") {
  ModelOnStore model;
  CheckOptions options;
  options.sources = {model.remote()};
  options.mapping.emplace().path = model.remote() + "/mapping.json";
  for (int at = 1;; ++at) {
    CAPTURE(at);
    shardtool::store::forget_listing(model.remote());
    const auto flag = interrupt_at(model.store(), at);
    const Interruptible scope(flag.get());
    const auto error = testing::error_of([&] { return api::check(options); });
    model.store().delay(nullptr);
    if (!*flag) break;
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kInterrupted);
  }
}

}  // namespace
}  // namespace shardtool::api
