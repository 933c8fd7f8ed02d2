// The list of interrupted runs tells what a resume would find, and a discard leaves nothing of
// them and everything else.

#include "lib/api/interrupted.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/api/transfer/run_note.h"
#include "lib/api/transfer/share_record.h"
#include "lib/format/checkpoint.h"
#include "lib/store/local/output_claim.h"
#include "lib/store/local/tree.h"
#include "tests/api/disturbed_jobs.h"
#include "tests/support/dying_syscalls.h"
#include "tests/support/faulty_syscalls.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using testing::Death;

constexpr i64 kTensors = 22;  // of Jobs

WriteOptions typed(const Jobs& jobs, bool resume) {
  WriteOptions write = jobs.careful(resume);
  write.command_line = {"split", "two words", "-o", "out"};
  return write;
}

/// Leaves a split that died at its n-th system call. Returns false if it had fewer.
bool leave_split(const Jobs& jobs, int n) {
  jobs.clear();
  return testing::dies_at(n, Death::kKilled, 1,
                          [&] { jobs.run(Verb::kSplit, typed(jobs, false)); });
}

TEST_CASE("a run that is killed anywhere is listed as a resume finds it") {
  const Jobs jobs;
  int listed = 0;
  for (int n = 1; leave_split(jobs, n); n += 3) {
    CAPTURE(n);
    if (!jobs.has_leftovers() || jobs.is_published()) continue;
    const InterruptedRuns found = interrupted_runs(jobs.folder.path());
    CHECK(found.of_others == 0);
    const i64 finished = found.runs.empty() ? 0 : found.runs.front().tensors_finished;
    if (finished > 0) {
      const InterruptedRun& run = found.runs.front();
      CHECK(run.output == fs::canonical(jobs.folder.path()).string() + "/out");
      CHECK(run.command == typed(jobs, false).command_line);
      CHECK(run.started_in == fs::current_path().string());
      CHECK(run.tensors == kTensors);
      CHECK_FALSE(run.is_running);
      CHECK(run.bytes > 0);
      CHECK(run.seconds_ago < 60);
      ++listed;
    }
    const testing::FaultySyscalls no_syncs;
    const TransformReport resumed = jobs.run(Verb::kSplit, typed(jobs, true));
    CHECK((resumed.resumed ? resumed.resumed->tensors : 0) == finished);
    CHECK(interrupted_runs(jobs.folder.path()).runs.empty());
  }
  CHECK(listed > 10);
}

/// Opens a hidden folder, and its only file by name: neither shows a checkpoint before the manifest
/// is there.
void check_refused(const fs::path& hidden) {
  if (fs::exists(hidden / format::kManifestName)) return;
  CHECK_ERROR(kFileMissing, format::open_checkpoint(hidden.string()));
  const fs::path file = hidden / "model.safetensors";
  if (fs::exists(file)) CHECK_ERROR(kFileMissing, format::open_checkpoint(file.string()));
}

TEST_CASE("the folder of a run that is killed anywhere is no checkpoint") {
  const Jobs jobs;
  const std::string link = jobs.folder / "link";
  int left = 0;
  for (int n = 1;; n += 7) {
    CAPTURE(n);
    jobs.clear();
    const auto work = [&] { jobs.run(Verb::kMerge, jobs.careful(false)); };
    if (!testing::dies_at(n, Death::kKilled, 1, work)) break;
    for (const std::string& name : store::names_in(jobs.folder.path())) {
      if (!name.starts_with('.') || !name.ends_with(".tmp")) continue;
      check_refused(jobs.folder / name);
      fs::create_directory_symlink(jobs.folder / name, link);
      check_refused(link);
      fs::remove(link);
      ++left;
    }
  }
  CHECK(left > 10);
}

TEST_CASE("discarding a run that is killed anywhere leaves everything else") {
  const Jobs jobs;
  jobs.clear();
  const auto before = store::names_in(jobs.folder.path());
  int discarded = 0;
  for (int n = 1; leave_split(jobs, n); n += 5) {
    CAPTURE(n);
    if (jobs.is_published()) continue;
    const i64 runs = std::ssize(interrupted_runs(jobs.folder.path()).runs);
    if (runs == 0) continue;
    CHECK(std::ssize(discard_runs(jobs.folder / "out").runs) == runs);
    CHECK(store::names_in(jobs.folder.path()) == before);
    ++discarded;
  }
  CHECK(discarded > 10);
}

TEST_CASE("a published output stays when the remains of a later run are discarded") {
  const Jobs jobs;
  jobs.clear();
  jobs.run(Verb::kSplit, jobs.careful(false));
  WriteOptions replacing = jobs.careful(false);
  replacing.force = true;
  int n = 30;
  while (interrupted_runs(jobs.folder / "out").runs.empty()) {
    REQUIRE(testing::dies_at(n, Death::kKilled, 1, [&] { jobs.run(Verb::kMerge, replacing); }));
    ++n;
  }
  CHECK(discard_runs(jobs.folder / "out").runs.size() == 1);
  CHECK(jobs.is_right(Verb::kSplit));
  CHECK_FALSE(jobs.has_leftovers());
}

TEST_CASE("shares that have not ended are named, and discarded with the others") {
  const Jobs jobs;
  jobs.clear();
  WriteOptions write = typed(jobs, false);
  write.share = Share{1, 4};
  jobs.run(Verb::kSplit, write);
  const InterruptedRuns found = interrupted_runs(jobs.folder / "out");
  REQUIRE(found.runs.size() == 1);
  CHECK(found.runs.front().shares == 4);
  CHECK(found.runs.front().missing == std::vector{0, 2, 3});
  CHECK(found.runs.front().tensors_finished > 0);
  discard_runs(found.runs.front().folder);
  CHECK_FALSE(jobs.has_leftovers());
}

TEST_CASE("a run that goes on is listed as running and not discarded") {
  const Jobs jobs;
  REQUIRE(leave_split(jobs, 60));
  const std::string output = jobs.folder / "out";
  for (const auto kind : {store::LockKind::kExclusive, store::LockKind::kShared}) {
    const store::OutputClaim claim(output, store::Existing::kReplace, kind);
    const InterruptedRuns found = interrupted_runs(jobs.folder.path());
    REQUIRE(found.runs.size() == 1);
    CHECK(found.runs.front().is_running);
    CHECK_ERROR(kOutputLocked, discard_runs(output));
    CHECK(interrupted_runs(jobs.folder.path()).runs.size() == 1);
  }
}

TEST_CASE("nothing that only looks like the remains of a run is discarded") {
  const test::TempFolder folder;
  folder.write("precious/file", "text");
  const std::string hidden = folder / ".out.shardtool-0123456789abcdef0123456789abcdef";
  SUBCASE("a link to a folder") {
    fs::create_symlink(folder / "precious", hidden + ".tmp");
  }
  SUBCASE("a file in place of the folder") {
    folder.write(hidden.substr(hidden.rfind('/')) + ".tmp", "");
  }
  SUBCASE("a journal of another run") {
    fs::create_directory(hidden + ".tmp");
    exec::Journal journal(hidden + ".0.journal",
                          journal_title({"source", "target"}, {}, folder / "out", 1), {}, [] {});
    journal.finished(0, {}, 1);
    journal.commit();
  }
  CHECK(interrupted_runs(folder.path()).of_others == 1);
  const auto before = store::names_in(folder.path());
  CHECK_ERROR(kOtherRun, discard_runs(folder / "out"));
  CHECK(store::names_in(folder.path()) == before);
  CHECK(fs::exists(folder / "precious/file"));
}

TEST_CASE("a name that no run left is refused") {
  const test::TempFolder folder;
  folder.write(".out.shardtool-0123.tmp/file", "an id has 32 digits");
  folder.write("out/file", "text");
  CHECK(interrupted_runs(folder.path()).runs.empty());
  CHECK_ERROR(kFileMissing, discard_runs(folder / "out"));
  CHECK_ERROR(kFileMissing, discard_runs(folder / ".out.shardtool-0123.tmp"));
  CHECK_ERROR(kFileMissing, interrupted_runs(folder / "absent"));
  CHECK(fs::exists(folder / ".out.shardtool-0123.tmp/file"));
}

TEST_CASE("a damaged number of shares is an error, not a size of memory") {
  for (const std::string number : {"-1", "65537", "4294967297", "1000000000000"}) {
    CAPTURE(number);
    const std::string note =
        R"({"command": [], "started_in": "", "output": "", "tensors": 1, "shares": )" + number +
        "}";
    CHECK_ERROR(kManifestInvalid, parse_run_note(note, "journal"));
    CHECK_ERROR(kManifestInvalid, parse_share_record("{\"share\":" + number + "}\n", "record"));
    CHECK_ERROR(kManifestInvalid, parse_share_record("{\"of\":" + number + "}\n", "record"));
  }
  for (const std::string field : {"share", "of"}) {
    const auto error =
        testing::error_of([&] { return parse_share_record("{\"" + field + "\":-1}\n", "r"); });
    REQUIRE(error);
    CHECK(error->message() == "no number of shares");
  }
}

}  // namespace
}  // namespace shardtool::api
