// Outputs on a store that several runs or shares make together.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "lib/api/finish.h"
#include "lib/api/interrupted.h"
#include "tests/api/store/stored_model.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::PlayedAnswer;

struct SharedRun {
  LargeModel model;
  std::map<std::string, std::string> expected = model.expected();

  TransformReport share(int number, int of) const {
    SplitOptions options = model.options(kOutput);
    options.write.share = Share{number, of};
    return split(options);
  }
  TransformReport resume() const {
    SplitOptions options = model.options(kOutput);
    options.write.resume = true;
    return split(options);
  }
  bool is_published() { return model.store().below("out") == expected; }
  void check_published() {
    CHECK(is_published());
    CHECK(model.store().open_uploads() == 0);
  }
  /// A failed run is published only whole: the request that deletes the mark may be the failed one.
  void check_unfinished_or_whole() {
    const auto left = model.store().below("out");
    CHECK((left.empty() || left.contains(".shardtool-unfinished") || is_published()));
  }
};

}  // namespace

TEST_CASE("a run that died at any request is resumed and leaves nothing behind") {
  SharedRun run;
  run.model.store().disturb([](int, PlayedAnswer&) {});
  split(run.model.options(kOutput));
  run.check_published();
  const int requests = run.model.store().requests();
  i64 taken_up = 0;
  for (int at = 1; at <= requests; ++at) {
    run.model.store().clear();
    die_at(run.model.store(), at);
    const auto error = testing::error_of([&] { return split(run.model.options(kOutput)); });
    if (!error) continue;  // the last requests only tidy up
    CHECK(error->code() == ErrorCode::kStoreRefused);
    run.model.store().disturb(nullptr);
    run.check_unfinished_or_whole();
    const TransformReport report = run.resume();
    taken_up = std::max(taken_up, report.resumed ? report.resumed->tensors : 0);
    run.check_published();
  }
  CHECK(taken_up > 1);
}

TEST_CASE("a run that died is discarded by one that does not resume") {
  SharedRun run;
  for (const int at : {3, 5, 9, 14}) {
    run.model.store().clear();
    die_at(run.model.store(), at);
    CHECK_ERROR(kStoreRefused, split(run.model.options(kOutput)));
    run.model.store().disturb(nullptr);
    CHECK_FALSE(split(run.model.options(kOutput)).resumed);
    run.check_published();
  }
}

TEST_CASE("1, 2, 4 and 64 shares in any order give the objects of one run") {
  SharedRun run;
  std::minstd_rand random(1);
  for (const int shares : {1, 2, 4, 64}) {
    run.model.store().clear();
    std::vector<int> order;
    for (int number = 0; number < shares; ++number) order.push_back(number);
    std::ranges::shuffle(order, random);
    for (const int number : order) {
      const TransformReport report = run.share(number, shares);
      CHECK(report.share->published == (number == order.back()));
    }
    run.check_published();
  }
  CHECK(run.share(0, 64).was_complete);
}

TEST_CASE("shares at the same time, and the same share twice, give the objects of one run") {
  SharedRun run;
  for (const int shares : {2, 4}) {
    run.model.store().clear();
    {
      std::vector<std::jthread> processes;
      for (int i = 0; i < 2 * shares; ++i) {
        processes.emplace_back([&, i] {
          // Both find the uploads of one of them; who loses a race that no lock decides is told.
          const auto error = testing::error_of([&] { return run.share(i % shares, shares); });
          if (error) CHECK_MESSAGE(error->is_resumable(), error->message());
        });
      }
    }
    for (int number = 0; number < shares; ++number) run.share(number, shares);
    run.check_published();
  }
}

TEST_CASE("a share that died at any request is run again, alone") {
  SharedRun run;
  run.share(1, 2);
  run.model.store().disturb([](int, PlayedAnswer&) {});
  run.share(0, 2);
  const int requests = run.model.store().requests();
  for (int at = 1; at <= requests; ++at) {
    run.model.store().clear();
    run.share(1, 2);
    die_at(run.model.store(), at);
    const auto error = testing::error_of([&] { return run.share(0, 2); });
    run.model.store().disturb(nullptr);
    if (error) run.check_unfinished_or_whole();
    run.share(0, 2);
    run.check_published();
  }
}

TEST_CASE("an output is not published without a file that a share has written") {
  SharedRun run;
  run.share(0, 2);
  run.model.store().put("out/generation_config.json", "{");
  const auto error = testing::error_of([&] { return run.share(1, 2); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kFileMissing);
  CHECK(error->place()->file.ends_with("/generation_config.json"));
  CHECK(run.model.store().below("out").contains(".shardtool-unfinished"));
  run.share(0, 2);
  run.check_published();
}

TEST_CASE("finish names the shares that are missing and publishes when none is") {
  SharedRun run;
  FinishOptions options;
  options.output = kOutput;
  CHECK_ERROR(kFileMissing, finish(options));
  CHECK(run.share(2, 3).share->missing == std::vector<int>{0, 1});
  run.share(0, 3);
  const auto error = testing::error_of([&] { return finish(options); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kShareMissing);
  CHECK(error->message().find("have not ended: 1") != std::string::npos);
  // The share ends, and the store refuses what follows its record.
  std::atomic<bool> is_recorded = false;
  run.model.store().disturb([&](int, PlayedAnswer& answer) {
    if (is_recorded) answer = {403, "", "<Error><Code>AccessDenied</Code></Error>"};
    is_recorded = is_recorded || run.model.store().has_hidden("out", "1-of-3.share");
  });
  CHECK_ERROR(kStoreRefused, run.share(1, 3));
  run.model.store().disturb(nullptr);
  options.verify = true;
  const FinishReport report = finish(options);
  CHECK(report.shares == 3);
  CHECK(*report.bytes_verified > 0);
  run.check_published();
  CHECK(finish(options).was_complete);
}

TEST_CASE("a share or a resumed run of another plan is refused, and what is there can be deleted") {
  SharedRun run;
  run.share(1, 2);
  SplitOptions other = run.model.options(kOutput);
  other.mapping.settings = {{"axes.zeroed.pad_to", "128"}};
  other.write.share = Share{0, 2};
  CHECK_ERROR(kOtherRun, split(other));
  other.write.share.reset();
  other.write.resume = true;
  CHECK_ERROR(kOtherRun, split(other));
  const InterruptedRuns discarded = discard_runs(kOutput);
  REQUIRE(discarded.runs.size() == 1);
  CHECK(discarded.runs.front().tensors_finished > 0);
  CHECK(run.model.store().below("out").empty());
  CHECK(run.model.store().open_uploads() == 0);
  CHECK_ERROR(kFileMissing, discard_runs(kOutput));
  other.write.resume = false;
  split(other);
  CHECK((run.model.store().below("out") != run.expected));
}

}  // namespace shardtool::api
