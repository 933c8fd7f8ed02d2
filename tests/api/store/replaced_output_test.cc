// Runs that replace an output on a store and die while they delete it.
#include <doctest/doctest.h>

#include "tests/api/store/stored_model.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

/// A run that replaces an output by that of model 0 is killed, and a later one goes on.
struct Replacement {
  AlikeModels models{kThreeRanks};
  bool has_more_files = false;  ///< the output before
  bool uploads_have_ended = false;

  /// Puts an output there and kills the run that replaces it before its request `at`. Returns
  /// false if it has fewer.
  bool die(int at) {
    models.store.clear();
    SplitOptions before = models.options(1);
    if (has_more_files) before.write.max_file_size = 2500;
    split(before);
    return die_again(at, false);
  }
  bool die_again(int at, bool resume) {
    SplitOptions options = models.options(0, true);
    options.write.resume = resume;
    options.write.worth_keeping = 1;
    options.write.journal_bytes = 1;
    die_at(models.store, at);
    const bool has_died = testing::error_of([&] { return split(options); }).has_value();
    models.store.disturb(nullptr);
    if (uploads_have_ended) models.store.end_uploads();
    return has_died;
  }
  /// Goes on with --resume and checks that this alone publishes the output. Returns false if no
  /// tensor of the earlier run was left to it.
  bool go_on() {
    SplitOptions options = models.options(0, true);
    options.write.resume = true;
    TransformReport report;
    const auto error = testing::error_of([&] { report = split(options); });
    CHECK_MESSAGE(!error, (error ? error->message() : ""));
    check_published();
    return report.was_complete || (report.resumed && report.resumed->tensors > 0);
  }
  void check_published() {
    CHECK(models.store.below("out") == models.expected[0]);
    CHECK(models.store.open_uploads() == 0);
  }
};

}  // namespace

TEST_CASE("a replacement that died at any request is resumed, and nothing is left of the output") {
  Replacement run;
  for (const bool has_more_files : {false, true}) {
    run.has_more_files = has_more_files;
    int deaths = 0;
    for (int at = 1; run.die(at); ++at, ++deaths) {
      CAPTURE(has_more_files);
      CAPTURE(at);
      run.go_on();
    }
    CHECK(deaths > 30);
  }
}

TEST_CASE("no object of a replaced output is taken for one of a run whose uploads have ended") {
  Replacement run;
  int lost = 0;
  for (int at = 1;; ++at) {
    CAPTURE(at);
    run.uploads_have_ended = false;
    if (!run.die(at)) break;
    const bool had_tensors = run.go_on();
    run.uploads_have_ended = true;
    run.die(at);
    const bool has_tensors = run.go_on();
    lost += had_tensors && !has_tensors ? 1 : 0;
  }
  CHECK(lost > 0);
}

TEST_CASE("a run that goes on with the deletion of an output may be killed, too") {
  Replacement run;
  run.has_more_files = true;
  for (const bool uploads_have_ended : {false, true}) {
    run.uploads_have_ended = uploads_have_ended;
    int deaths = 0;
    for (int at = 1; run.die(at); ++at) {
      for (const bool resume : {false, true}) {
        CAPTURE(at);
        CAPTURE(resume);
        const int second = 1 + at * 7 % 29;
        run.die(at);
        deaths += run.die_again(second, resume) ? 1 : 0;
        run.go_on();
      }
    }
    CHECK(deaths > 60);
  }
}

}  // namespace shardtool::api
