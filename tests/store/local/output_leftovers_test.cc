// Leftovers of a killed run beside an output: the next run deletes them or takes them up.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "lib/store/local/output_folder.h"
#include "lib/store/local/tree.h"
#include "tests/store/local/written_output.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::store {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using Names = std::vector<std::string>;

TEST_CASE("what a killed run left is deleted by the next one, and nothing else is") {
  const TempFolder folder;
  folder.write(".out.shardtool-mine.tmp/file", "not our pattern");
  folder.write(".other.shardtool-" + kId + ".tmp/file", "another output's");
  folder.write(".out.shardtool-" + kId + ".tmp.keep/file", "not our pattern");
  folder.write(".out.shardtool-" + kOtherId + ".tmp/file", "a run of another layout");
  folder.write(".out.shardtool-" + kOtherId + ".12.journal", "and what it finished");
  const pid_t child = fork();
  if (child == 0) {
    OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
    fill(output);
    _exit(0);  // as if killed
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(names_in(folder.path()).size() == 5);
  write_output(folder / "out");
  CHECK(names_in(folder.path()) == Names{".other.shardtool-" + kId + ".tmp",
                                         ".out.shardtool-" + kId + ".tmp.keep",
                                         ".out.shardtool-mine.tmp", "out"});
}

/// Runs until file "a" is written and is then killed.
void write_and_die(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    OutputFolder output(OutputClaim(path, Existing::kRefuse), kId, Leftover::kDiscard);
    write_exact(output.create("a"), std::as_bytes(std::span(std::string_view("first"))), 0);
    _exit(0);  // as if killed
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
}

TEST_CASE("what a killed run left is taken up by a run with the same id") {
  const TempFolder folder;
  write_and_die(folder / "out");
  folder.write(".out.shardtool-" + kId + ".0.journal", "what is finished");
  const OutputClaim claim(folder / "other", Existing::kRefuse);
  CHECK(claim.leftovers().empty());
  {
    OutputClaim again(folder / "out", Existing::kRefuse);
    CHECK(again.leftovers() == Names{kId});
    OutputFolder output(std::move(again), kId, Leftover::kContinue);
    CHECK(output.continues());
    CHECK(read_text(output.create_or_open("a").path(), 10) == "first");
    CHECK(read_text(hidden_journal(output.claim().place(), kId, 0), 100) == "what is finished");
    write_exact(output.create("b"), std::as_bytes(std::span(std::string_view("second"))), 0);
    output.publish(std::vector<WrittenFile>{{"a", 5}, {"b", 6}});
  }
  CHECK(names_in(folder.path()) == Names{".other.shardtool.lock", "out"});
  CHECK(read_text(folder / "out/a", 10) == "first");
  CHECK(read_text(folder / "out/b", 10) == "second");
}

/// Continues the interrupted run of `folder`/out up to its file "a".
void take_up(const TempFolder& folder) {
  OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kContinue);
  output.create_or_open("a");
}

TEST_CASE("a leftover that somebody else could have made is not taken up") {
  const TempFolder folder;
  const std::string hidden = folder / (".out.shardtool-" + kId + ".tmp");
  folder.write("elsewhere/a", "content");
  SUBCASE("a link in place of the folder") {
    fs::create_symlink("elsewhere", hidden);
  }
  SUBCASE("a file in place of the folder") {
    folder.write(fs::path(hidden).filename().string(), "file");
  }
  SUBCASE("a link in place of a file") {
    fs::create_directories(hidden);
    fs::create_symlink(folder / "elsewhere/a", hidden + "/a");
  }
  SUBCASE("a file that has another name, too") {
    fs::create_directories(hidden);
    fs::create_hard_link(folder / "elsewhere/a", hidden + "/a");
  }
  CHECK_ERROR(kOtherRun, (take_up(folder), 0));
  CHECK(read_text(folder / "elsewhere/a", 10) == "content");
}

TEST_CASE("a leftover of another user is not taken up") {
  constexpr uid_t kStranger = 12'345;
  const TempFolder folder;
  const std::string hidden = folder / (".out.shardtool-" + kId + ".tmp");
  fs::create_directories(hidden);
  folder.write(fs::path(hidden).filename().string() + "/a", "content");
  if (::chown((hidden + "/a").c_str(), kStranger, kStranger) != 0) {
    MESSAGE("SKIPPED: only root can give files to others");
    return;
  }
  CHECK_ERROR(kOtherRun, (take_up(folder), 0));
  REQUIRE(::chown((hidden + "/a").c_str(), ::geteuid(), ::getegid()) == 0);
  REQUIRE(::chown(hidden.c_str(), kStranger, kStranger) == 0);
  CHECK_ERROR(kOtherRun, (take_up(folder), 0));
}

TEST_CASE("a file that is created again has nothing of the interrupted run's") {
  const TempFolder folder;
  write_and_die(folder / "out");
  OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kContinue);
  CHECK(read_text(output.create("a").path(), 10).empty());
}

TEST_CASE("a folder that was taken up stays when the run ends early, unless it is given up") {
  const TempFolder folder;
  write_and_die(folder / "out");
  const auto take_up = [&] {
    return OutputFolder(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kContinue)
        .continues();
  };
  CHECK(take_up());
  CHECK(take_up());
  {
    OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kContinue);
    output.give_up();
  }
  CHECK(names_in(folder.path()).empty());
  CHECK_FALSE(take_up());
}

TEST_CASE("a journal whose folder is gone is not believed") {
  const TempFolder folder;
  folder.write(".out.shardtool-" + kId + ".0.journal", "what was finished");
  OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kContinue);
  CHECK_FALSE(output.continues());
  CHECK_FALSE(fs::exists(hidden_journal(output.claim().place(), kId, 0)));
}

TEST_CASE("files of an output whose name goes on like this one's hidden names stay") {
  const TempFolder folder;
  const std::string other = ".out.shardtool-" + kId + ".x.shardtool-" + kOtherId;
  const Names theirs{other + ".0-of-2.share", other + ".0.journal", other + ".tmp"};
  folder.write(theirs[0], "an ended share");
  folder.write(theirs[1], "what is finished");
  folder.write(theirs[2] + "/a", "data");
  CHECK(OutputClaim(folder / "out", Existing::kRefuse).leftovers().empty());
  write_output(folder / "out");
  CHECK(names_in(folder.path()) == Names{theirs[0], theirs[1], theirs[2], "out"});
}

TEST_CASE("outputs whose long names differ at the end only do not share hidden files") {
  const TempFolder folder;
  const std::string stem(200, 'n');
  const OutputClaim a(folder / (stem + "a"), Existing::kRefuse);
  const OutputClaim b(folder / (stem + "b"), Existing::kRefuse);
  folder.write(fs::path(hidden_record(a.place(), kId, 65'535, 65'536)).filename().string(), "a's");
  CHECK(b.leftovers().empty());
  CHECK(b.discard(kId));
  CHECK(a.leftovers() == Names{kId});
  const std::vector<HiddenRun> runs = hidden_runs(folder.path());
  REQUIRE(runs.size() == 1);
  CHECK(hidden_lock(runs[0].place) == hidden_lock(a.place()));
  CHECK(a.discard(runs[0].id));
  CHECK(hidden_runs(folder.path()).empty());
}

}  // namespace
}  // namespace shardtool::store
