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
  /// Runs a share; the store refuses what follows its record.
  void end_unpublished(int number, int of) {
    std::atomic<bool> is_recorded = false;
    model.store().disturb([&](int, PlayedAnswer& answer) {
      if (is_recorded) answer = {403, "", "<Error><Code>AccessDenied</Code></Error>"};
      const std::string record = std::to_string(number) + "-of-" + std::to_string(of) + ".share";
      is_recorded = is_recorded || model.store().has_hidden("out", record);
    });
    CHECK_ERROR(kStoreRefused, share(number, of));
    model.store().disturb(nullptr);
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
  run.end_unpublished(1, 3);
  options.verify = true;
  const FinishReport report = finish(options);
  CHECK(report.shares == 3);
  CHECK(*report.bytes_verified > 0);
  run.check_published();
  CHECK(finish(options).was_complete);
}

TEST_CASE("an output whose header is not the one that was written is not published") {
  SharedRun run;
  run.share(1, 2);
  run.end_unpublished(0, 2);
  FinishOptions options;
  options.output = kOutput;
  run.model.store().change([](const test::ReceivedRequest& request, PlayedAnswer& answer) {
    const bool is_read = request.method == "GET" && request.headers.contains("range");
    const size_t framework = answer.body.find(R"("pt")");
    if (is_read && framework != std::string::npos) answer.body[framework + 1] = 'q';
  });
  const auto error = testing::error_of([&] { return finish(options); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kDataMismatch);
  CHECK(error->message() == "the header is not the one that was written");
  CHECK(run.model.store().below("out").contains(".shardtool-unfinished"));
  CHECK_FALSE(run.model.store().below("out").contains("manifest.json"));
  run.model.store().change(nullptr);
  finish(options);
  run.check_published();
}

TEST_CASE(
    "a finish believes the mark of an unfinished output, and no record beside a complete one") {
  SharedRun run;
  for (const int number : {0, 1}) run.share(number, 2);
  FinishOptions options;
  options.output = kOutput;
  // As a share leaves it that is told of its end after another one has published.
  run.model.store().put("out/.shardtool-0123456789abcdef0123456789abcdef/0-of-2.share", "");
  CHECK(finish(options).was_complete);
  // As a process leaves it that dies before its last request.
  run.model.store().put("out/.shardtool-unfinished", "");
  CHECK_ERROR(kShareMissing, finish(options));
}

TEST_CASE("shares that go on with a run that replaces an output leave nothing of the old one") {
  SharedRun run;
  SplitOptions old = run.model.options(kOutput);
  old.write.max_file_size = 6 << 20;  // more files than the new one
  SplitOptions lone = run.model.options(kOutput);
  lone.write.force = true;
  int replaced = 0;
  for (int at = 12; at < 40; at += 9) {
    CAPTURE(at);
    run.model.store().clear();
    split(old);
    die_at(run.model.store(), at);
    CHECK(testing::error_of([&] { return split(lone); }));
    run.model.store().disturb(nullptr);
    const auto left = run.model.store().below("out");
    const auto mark = left.find(".shardtool-unfinished");
    replaced += mark != left.end() && mark->second.find("still there") != std::string::npos;
    for (const int number : {0, 1}) {
      SplitOptions share = lone;
      share.write.share = Share{number, 2};
      split(share);
    }
    run.check_published();
  }
  CHECK(replaced > 1);
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
