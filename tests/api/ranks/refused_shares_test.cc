// Shares that cannot be ended are refused, and named: of another run, missing, damaged.
#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "lib/store/local/tree.h"
#include "tests/api/disturbed_jobs.h"
#include "tests/api/ranks/share_runs.h"
#include "tests/support/faulty_syscalls.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using testing::FaultySyscalls;

TEST_CASE("a share of another source, mapping or mesh is refused, and the others go on") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  run_one(jobs, Verb::kSplit, {0, 2});
  const auto error = testing::error_of([&] { return run_one(jobs, Verb::kReshard, {1, 2}); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kOtherRun);
  CHECK(error->message().find("share of another run") != std::string::npos);
  run_one(jobs, Verb::kSplit, {1, 2});
  CHECK(jobs.is_right(Verb::kSplit));
}

TEST_CASE("a finish names the shares that have not ended") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  CHECK_ERROR(kFileMissing, finish_out(jobs));
  for (const int number : {0, 2, 4}) run_one(jobs, Verb::kSplit, {number, 5});
  const auto error = testing::error_of([&] { return finish_out(jobs); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kShareMissing);
  CHECK(error->message() == "2 of 5 shares have not ended: 1, 3");
  CHECK_FALSE(jobs.is_published());
}

TEST_CASE("shares that began and did not end are no output") {
  const Jobs jobs;
  FaultySyscalls faults;
  faults.fail(testing::Call::kPwrite, 20, EIO);
  const auto failed = testing::error_of([&] { return run_one(jobs, Verb::kSplit, {0, 2}); });
  REQUIRE(failed);
  CHECK(failed->is_resumable());
  CHECK_ERROR(kShareMissing, finish_out(jobs));
}

TEST_CASE("shares with other options than the first are named") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  run_one(jobs, Verb::kSplit, {0, 2});
  WriteOptions write = share_options(jobs, {1, 2});
  write.sha256 = true;
  const auto error = testing::error_of([&] { return jobs.run(Verb::kSplit, write); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kOtherRun);
  CHECK(error->message() == "share 1/2 was run with other options than share 0/2");
  run_one(jobs, Verb::kSplit, {1, 2});
  CHECK(jobs.is_right(Verb::kSplit));
}

TEST_CASE("a record that is damaged and a file that is gone are named") {
  const Jobs jobs;
  const FaultySyscalls no_syncs;
  run_one(jobs, Verb::kSplit, {0, 2});
  std::string hidden;
  for (const std::string& name : store::names_in(jobs.folder.path())) {
    if (name.ends_with(".tmp")) hidden = jobs.folder / name;
  }
  const std::string record = hidden.substr(0, hidden.size() - 4) + ".0-of-2.share";
  {
    std::fstream file(record, std::ios::in | std::ios::out);
    file.seekp(-20, std::ios::end);
    file.put('!');
  }
  CHECK_ERROR(kManifestInvalid, run_one(jobs, Verb::kSplit, {1, 2}));
  run_one(jobs, Verb::kSplit, {0, 2});
  CHECK(jobs.is_right(Verb::kSplit));

  // The last share would give the file its size again, with neither header nor data.
  jobs.clear();
  for (const int number : {0, 1}) run_one(jobs, Verb::kSplit, {number, 3});
  fs::remove(hidden + "/model-rank-1-part-0.safetensors");
  const auto error = testing::error_of([&] { return run_one(jobs, Verb::kSplit, {2, 3}); });
  REQUIRE(error);
  CHECK(error->exit_status() == 4);
  CHECK_FALSE(jobs.is_published());
}

}  // namespace
}  // namespace shardtool::api
