// Two runs that write one prefix of a store at the same time.
#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "lib/api/transfer/store/owned_prefix.h"
#include "lib/format/manifest/manifest.h"
#include "tests/api/store/stored_model.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

/// A run stops before one of its requests, another one goes on until one of its own or to its end;
/// then the first ends, and then the other.
class Schedule {
 public:
  Schedule(int first_stops, int other_stops)
      : first_stops_(first_stops), other_stops_(other_stops) {}

  /// Returns which of the runs succeeded.
  std::pair<bool, bool> go(ServedStore& store, const std::function<void()>& first,
                           const std::function<void()>& other) {
    store.delay([this](int) { arrive(); });
    std::jthread first_thread([&] {
      succeeded_.first = !testing::error_of(first);
      set(Turn::kOther, true);
    });
    wait_until([this] { return turn_ != Turn::kFirst; });
    std::jthread other_thread([&] {
      succeeded_.second = !testing::error_of(other);
      set(Turn::kFirstAgain, true);
    });
    first_thread.join();
    set(Turn::kFree, true);
    other_thread.join();
    store.delay(nullptr);
    return succeeded_;
  }

 private:
  enum class Turn { kFirst, kOther, kFirstAgain, kFree };

  void set(Turn turn, bool only_forward = false) {
    const std::lock_guard lock(mutex_);
    if (!only_forward || turn > turn_) turn_ = turn;
    changed_.notify_all();
  }
  void wait_until(const std::function<bool()>& is_reached) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, is_reached);
  }

  /// Holds the request before which its run stops, until it is that run's turn again.
  void arrive() {
    std::unique_lock lock(mutex_);
    if (turn_ == Turn::kFirst && ++first_requests_ == first_stops_) {
      turn_ = Turn::kOther;
      changed_.notify_all();
      changed_.wait(lock, [this] { return turn_ >= Turn::kFirstAgain; });
    } else if (turn_ == Turn::kOther && ++other_requests_ == other_stops_) {
      turn_ = Turn::kFirstAgain;
      changed_.notify_all();
      changed_.wait(lock, [this] { return turn_ >= Turn::kFree; });
    }
  }

  const int first_stops_;
  const int other_stops_;
  std::mutex mutex_;  ///< guards the members below
  std::condition_variable changed_;
  Turn turn_ = Turn::kFirst;
  int first_requests_ = 0;
  int other_requests_ = 0;
  std::pair<bool, bool> succeeded_;
};

/// Outputs with padding that repeats elements are made on this machine before they are sent.
constexpr const char* kRepeatedPadding =
    R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
    "axes": {"long": {"mesh": "tp", "uneven": "pad", "pad_to": 4, "padding": "repeat_last"}},
    "rules": [{"match": "**", "dims": ["long", null]}]})";

}  // namespace

TEST_CASE("a run that succeeds leaves a whole output, whenever another one writes its prefix") {
  for (const char* mapping : {kThreeRanks, kRepeatedPadding}) {
    AlikeModels models(mapping);
    const int requests = models.requests();
    for (const int other : {0, 1}) {
      for (int stops = 1; stops <= requests; ++stops) {
        models.store.clear();
        const auto [first, second] =
            Schedule(stops, 1 << 20).go(models.store, models.run(0), models.run(other));
        INFO(mapping, ", other model: ", other, ", first stops: ", stops, ", succeeded: ", first);
        CHECK(second);
        CHECK(models.is_published());
        CHECK(models.store.open_uploads() == 0);
      }
    }
    MESSAGE("schedules: ", 2 * requests);
  }
}

TEST_CASE("an output that is replaced stays until the new one is complete") {
  AlikeModels models(kThreeRanks);
  models.store.clear();
  models.run(1)();
  const auto old_objects = models.store.below("out");
  models.store.disturb([](int, test::PlayedAnswer&) {});
  models.run(0, true)();
  const int requests = models.store.requests();
  CHECK(models.store.below("out") == models.expected[0]);
  int kept = 0;
  int replaced = 0;
  for (int at = 1; at <= requests; ++at) {
    CAPTURE(at);
    models.store.clear();
    models.run(1)();
    die_at(models.store, at);
    const auto error = testing::error_of(models.run(0, true));
    models.store.disturb(nullptr);
    const auto left = models.left();
    kept += left == old_objects ? 1 : 0;
    replaced += left == models.expected[0] ? 1 : 0;
    const auto all = models.store.below("out");
    const auto mark = all.find(".shardtool-unfinished");
    const bool is_refused =
        mark != all.end() && mark->second.find("still there") == std::string::npos;
    CHECK(models.can_read() != is_refused);
    if (is_refused) {
      CHECK(error);
    } else {
      CHECK((left == old_objects || left == models.expected[0]));
    }
    if (!is_refused && left == old_objects) {
      CHECK_ERROR(kOutputExists, models.run(0)());
      CHECK(models.left() == old_objects);
    }
    models.run(0, true)();
    CHECK(models.is_published());
    CHECK(models.store.open_uploads() == 0);
  }
  CHECK(kept > requests / 3);
  MESSAGE("died ", requests, " times: ", kept, " times before, ", replaced, " times after");
}

TEST_CASE(
    "a request that fails costs neither the output that is replaced nor the one that was sent") {
  AlikeModels models(kThreeRanks);
  models.store.clear();
  models.run(1)();
  models.store.disturb([](int, test::PlayedAnswer&) {});
  models.run(0, true)();
  const int requests = models.store.requests();
  int resumed = 0;
  for (int at = 1; at <= requests; ++at) {
    CAPTURE(at);
    models.store.clear();
    models.run(1)();
    models.store.disturb([at](int number, test::PlayedAnswer& answer) {
      if (number == at) answer = {403, "", "<Error><Code>AccessDenied</Code></Error>"};
    });
    const auto error = testing::error_of(models.run(0, true));
    models.store.disturb(nullptr);
    if (models.left() == models.expected[1]) {
      CHECK(models.can_read());
      continue;
    }
    if (!error) continue;
    ++resumed;
    SplitOptions again = models.options(0, true);
    again.write.resume = true;
    const TransformReport report = split(again);
    CHECK((report.was_complete || report.resumed->tensors == 3));
    CHECK(models.store.below("out") == models.expected[0]);
    CHECK(models.store.open_uploads() == 0);
  }
  CHECK(resumed > 0);
  MESSAGE("one of ", requests, " requests failed: ", resumed, " times with --resume afterwards");
}

TEST_CASE("a prefix whose output is gone when a run takes it is not said to have it") {
  ServedStore& store = ServedStore::instance();
  store.clear();
  const StorePlace place(kOutput);
  StorePlace::Found found;
  found.names = {format::kManifestName};
  CHECK(OwnedPrefix(place, "one").take(found).is_unfinished());
  store.put("out/manifest.json", "{}");
  CHECK(place.look().is_unfinished());
}

TEST_CASE("of two runs that replace an output the last that succeeds leaves a whole one") {
  AlikeModels models(kThreeRanks);
  const int requests = models.requests() + 10;
  for (const int other : {0, 1}) {
    for (int stops = 1; stops <= requests; ++stops) {
      models.store.clear();
      models.run(2)();
      const auto [first, second] =
          Schedule(stops, 1 << 20).go(models.store, models.run(0, true), models.run(other, true));
      INFO("other model: ", other, ", first stops: ", stops, ", succeeded: ", first, second);
      CHECK(second);
      CHECK(models.is_published());
    }
  }
}

TEST_CASE("of two runs whose requests interleave one succeeds with a whole output, or none does") {
  AlikeModels models(kThreeRanks);
  const int requests = models.requests();
  int neither = 0;
  int schedules = 0;
  for (int first_stops = 1; first_stops <= requests; ++first_stops) {
    for (int other_stops = 1; other_stops <= requests; ++other_stops) {
      models.store.clear();
      const auto [first, second] =
          Schedule(first_stops, other_stops).go(models.store, models.run(0), models.run(1));
      INFO("stops: ", first_stops, " and ", other_stops, ", succeeded: ", first, second);
      ++schedules;
      neither += first || second ? 0 : 1;
      if (first || second) CHECK(models.is_published());
      // Two failures leave nothing, or a prefix that readers refuse.
      const auto left = models.store.below("out");
      CHECK((left.empty() || left.contains(".shardtool-unfinished") || models.is_published()));
    }
  }
  MESSAGE("schedules: ", schedules, ", neither succeeded: ", neither);
}

}  // namespace shardtool::api
