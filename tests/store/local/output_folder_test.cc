#include "lib/store/local/output_folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "lib/store/local/tree.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::store {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using Names = std::vector<std::string>;

const std::string kId(32, 'a');
const std::string kOtherId(32, 'b');

/// Files that `fill` writes.
const std::vector<WrittenFile> kFilled{{"a", 1}, {"b", 1}};

void fill(OutputFolder& output) {
  for (const std::string name : {"a", "b"}) {
    write_exact(output.create(name), std::as_bytes(std::span(name)), 0);
  }
}

void write_output(const std::string& path, Existing existing = Existing::kRefuse) {
  OutputFolder output(OutputClaim(path, existing), kId, Leftover::kDiscard);
  fill(output);
  output.publish(kFilled);
}

class InFolder {
 public:
  explicit InFolder(const std::string& path) : before_(fs::current_path()) {
    fs::current_path(path);
  }
  ~InFolder() { fs::current_path(before_); }

 private:
  fs::path before_;
};

TEST_CASE("nothing is at the final path until everything is, and nothing hidden remains") {
  const TempFolder folder;
  {
    OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
    fill(output);
    CHECK(output.final_path() == folder / "out");
    CHECK(!fs::exists(folder / "out"));
    CHECK(names_in(output.working_path()) == Names{"a", "b"});
    CHECK(bytes_free(output.working_path()) > 0);
    CHECK(output.publish(kFilled).empty());
    CHECK(names_in(folder / "out") == Names{"a", "b"});
  }
  CHECK(names_in(folder.path()) == Names{"out"});
  CHECK(read_text(folder / "out/b", 10) == "b");
}

TEST_CASE("an output that is given up leaves the folder as it was") {
  const TempFolder folder;
  {
    OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
    fill(output);
    fs::create_directories(output.working_path() + "/below");
  }
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("content is refused, and stays byte for byte") {
  const TempFolder folder;
  folder.write("out/old", "content");
  CHECK_ERROR(kOutputExists, (OutputClaim(folder / "out", Existing::kRefuse), 0));
  CHECK(names_in(folder.path()) == Names{"out"});
  CHECK(read_text(folder / "out/old", 10) == "content");
}

TEST_CASE("a file that another program touched is not published") {
  const auto damage = [](const std::string& how, const std::string& path) {
    if (how == "deleted") fs::remove(path);
    if (how == "emptied") fs::resize_file(path, 0);
    if (how == "extended") fs::resize_file(path, 2);
    if (how == "replaced") {
      fs::rename(path, path + ".old");
      fs::copy_file(path + ".old", path);
    }
    if (how == "replaced by a link") {
      fs::rename(path, path + ".old");
      fs::create_symlink(path + ".old", path);
    }
  };
  for (const std::string how :
       {"deleted", "emptied", "extended", "replaced", "replaced by a link"}) {
    CAPTURE(how);
    const TempFolder folder;
    {
      OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
      fill(output);
      damage(how, output.working_path() + "/b");
      CHECK_ERROR(kWriteFailed, (output.publish(kFilled), 0));
    }
    CHECK(names_in(folder.path()).empty());
  }
}

TEST_CASE("a file that nobody asked for is not published") {
  const TempFolder folder;
  OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
  fill(output);
  folder.write(".out.shardtool-" + kId + ".tmp/other/deep", "content");
  output.publish(kFilled);
  CHECK(names_in(folder / "out") == Names{"a", "b"});
}

TEST_CASE("an empty folder is a fine output") {
  const TempFolder folder;
  fs::create_directories(folder / "out");
  write_output(folder / "out");
  CHECK(names_in(folder / "out") == Names{"a", "b"});
  fs::create_directories(folder / "forced");
  write_output(folder / "forced", Existing::kReplace);
  CHECK(names_in(folder.path()) == Names{"forced", "out"});
}

TEST_CASE("content that appears during the run is not replaced") {
  const TempFolder folder;
  for (const Existing existing : {Existing::kRefuse, Existing::kReplace}) {
    {
      OutputFolder output(OutputClaim(folder / "out", existing), kId, Leftover::kDiscard);
      fill(output);
      folder.write("out/other", "content");
      CHECK_ERROR(kOutputExists, (output.publish(kFilled), 0));
    }
    CHECK(names_in(folder.path()) == Names{"out"});
    CHECK(names_in(folder / "out") == Names{"other"});
    fs::remove_all(folder / "out");
  }
}

TEST_CASE("a file that appears during the run is not replaced") {
  const TempFolder folder;
  OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
  folder.write("out", "content");
  CHECK_ERROR(kOutputExists, (output.publish({}), 0));
  CHECK(read_text(folder / "out", 10) == "content");
}

TEST_CASE("replacing leaves only the new content, and what old links named stays") {
  const TempFolder folder;
  folder.write("outside/file", "kept");
  folder.write("out/old/deep", "content");
  fs::create_directory_symlink(folder / "outside", folder / "out/link");
  {
    OutputFolder output(OutputClaim(folder / "out", Existing::kReplace), kId, Leftover::kDiscard);
    fill(output);
    CHECK(names_in(folder / "out") == Names{"link", "old"});
    output.publish(kFilled);
  }
  CHECK(names_in(folder.path()) == Names{"out", "outside"});
  CHECK(names_in(folder / "out") == Names{"a", "b"});
  CHECK(read_text(folder / "outside/file", 10) == "kept");
}

TEST_CASE("a file or a link at the final path is refused, with --force too") {
  const TempFolder folder;
  folder.write("file", "content");
  fs::create_directories(folder / "real");
  fs::create_directory_symlink("real", folder / "link");
  fs::create_symlink("nowhere", folder / "dangling");
  for (const Existing existing : {Existing::kRefuse, Existing::kReplace}) {
    CHECK_ERROR(kOutputExists, (OutputClaim(folder / "file", existing), 0));
    CHECK_ERROR(kOutputAliasesInput, (OutputClaim(folder / "link", existing), 0));
    CHECK_ERROR(kOutputAliasesInput, (OutputClaim(folder / "link/", existing), 0));
    CHECK_ERROR(kOutputAliasesInput, (OutputClaim(folder / "dangling", existing), 0));
  }
  CHECK(names_in(folder.path()) == Names{"dangling", "file", "link", "real"});
}

TEST_CASE("links above the output are resolved once, when it is opened") {
  const TempFolder folder;
  fs::create_directories(folder / "real");
  fs::create_directories(folder / "other");
  fs::create_directory_symlink("real", folder / "link");
  OutputFolder output(OutputClaim(folder / "link/out", Existing::kRefuse), kId, Leftover::kDiscard);
  CHECK(output.final_path() == folder / "real/out");
  fs::remove(folder / "link");
  fs::create_directory_symlink("other", folder / "link");
  output.publish({});
  CHECK(names_in(folder / "real") == Names{".out.shardtool.lock", "out"});
  CHECK(names_in(folder / "other").empty());
}

TEST_CASE("a path may be relative, end in slashes, or be a dot") {
  const TempFolder folder;
  const InFolder here(folder.path());
  write_output("plain");
  write_output("slashes///");
  fs::create_directories("inner/dot");
  write_output("./inner/../dots");
  {
    const InFolder below(folder / "inner");
    write_output("dot/.");
  }
  fs::create_directories("outer/down/deep");
  CHECK_ERROR(kOutputExists, (OutputClaim("outer/down/deep/..", Existing::kRefuse), 0));
  write_output("outer/down/deep/.");
  CHECK(names_in(folder / "outer/down/deep") == Names{"a", "b"});
  for (const char* name : {"plain", "slashes", "dots", "inner/dot"})
    CHECK(names_in(name) == Names{"a", "b"});
}

TEST_CASE(
    "the working folder is refused under every name, since a shell would stay in the old one") {
  const TempFolder folder;
  fs::create_directories(folder / "here/below");
  for (const Existing existing : {Existing::kRefuse, Existing::kReplace}) {
    const InFolder here(folder / "here/below");
    CHECK_ERROR(kWriteFailed, (OutputClaim(".", existing), 0));
    CHECK_ERROR(kWriteFailed, (OutputClaim("../below", existing), 0));
    CHECK_ERROR(kWriteFailed, (OutputClaim(folder / "here/below", existing), 0));
  }
  CHECK(names_in(folder / "here") == Names{"below"});
}

TEST_CASE("the root, an empty path and a missing parent are no outputs") {
  const TempFolder folder;
  CHECK_ERROR(kWriteFailed, (OutputClaim("/", Existing::kReplace), 0));
  CHECK_ERROR(kWriteFailed, (OutputClaim("/..", Existing::kReplace), 0));
  CHECK_ERROR(kWriteFailed, (OutputClaim("", Existing::kRefuse), 0));
  const auto error =
      testing::error_of([&] { return OutputClaim(folder / "absent/out", Existing::kRefuse), 0; });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kWriteFailed);
  CHECK(error->help_lines().front().find("mkdir -p") != std::string::npos);
}

TEST_CASE("a mount point is refused before anything is written") {
  CHECK_ERROR(kWriteFailed, (OutputClaim("/proc", Existing::kReplace), 0));
}

TEST_CASE("names of up to 255 bytes work, longer ones fail before anything is written") {
  const TempFolder folder;
  for (const size_t length : {199, 200, 201, 255}) {
    write_output(folder / std::string(length, 'n'));
    CHECK(names_in(folder / std::string(length, 'n')) == Names{"a", "b"});
  }
  CHECK(names_in(folder.path()).size() == 4);
  CHECK_ERROR(kWriteFailed, (OutputClaim(folder / std::string(256, 'n'), Existing::kRefuse), 0));
  CHECK_ERROR(kWriteFailed, (OutputClaim(folder / std::string(5000, 'n'), Existing::kRefuse), 0));
  CHECK(names_in(folder.path()).size() == 4);
}

TEST_CASE("only plain names are created inside, each once, and the files stay where they are") {
  const TempFolder folder;
  OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
  for (const char* name : {"", ".", "..", "a/b", "/a"}) {
    CHECK_ERROR(kWriteFailed, (output.create(name), 0));
  }
  File& first = output.create("0");
  for (int i = 1; i < 100; ++i) output.create(std::to_string(i));
  CHECK(first.path() == output.working_path() + "/0");
  CHECK_ERROR(kOutputExists, (output.create("0"), 0));
}

TEST_CASE("the modes of the folder and its files follow the umask") {
  for (const mode_t mask : {0077U, 0027U, 0000U}) {
    const TempFolder folder;
    const mode_t before = umask(mask);
    write_output(folder / "out");
    umask(before);
    struct stat status {};
    REQUIRE(stat((folder / "out").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == (0777U & ~mask));
    REQUIRE(stat((folder / "out/a").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == (0666U & ~mask));
  }
}

TEST_CASE("two runs of one output exclude each other, two outputs do not") {
  const TempFolder folder;
  OutputFolder first(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
  CHECK_ERROR(kOutputLocked, (OutputClaim(folder / "out", Existing::kReplace), 0));
  CHECK(fs::exists(first.working_path()));
  write_output(folder / "other");
  first.publish({});
}

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

TEST_CASE("a folder is kept when that is asked for") {
  const TempFolder folder;
  {
    OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kId, Leftover::kDiscard);
    fill(output);
    output.sync();
    output.keep();
  }
  CHECK(names_in(folder.path()) == Names{".out.shardtool-" + kId + ".tmp"});
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
