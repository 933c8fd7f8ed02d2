#include <doctest/doctest.h>
#include <sys/vfs.h>

#include <cerrno>
#include <filesystem>
#include <string_view>

#include "lib/store/local/output_folder.h"
#include "lib/store/local/syscalls.h"
#include "lib/store/local/tree.h"
#include "tests/support/faulty_syscalls.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::store {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using testing::Call;
using testing::FaultySyscalls;
using Names = std::vector<std::string>;

constexpr int kFiles = 3;
const std::string kRun(32, 'a');

/// Content under the output's name before the run.
enum class Before { kNothing, kEmptyFolder, kContent };

void prepare(const TempFolder& folder, Before before) {
  if (before == Before::kEmptyFolder) fs::create_directories(folder / "out");
  if (before == Before::kContent) folder.write("out/old", "old content");
}

/// Runs to the end and returns the error.
std::optional<Error> run(const TempFolder& folder) {
  return testing::error_of([&] {
    OutputFolder output(OutputClaim(folder / "out", Existing::kReplace), kRun, Leftover::kDiscard);
    std::vector<WrittenFile> written;
    for (int i = 0; i < kFiles; ++i) {
      written.push_back({std::to_string(i), 100});
      File& file = output.create(written.back().name);
      allocate(file, 100);
      write_exact(file, std::as_bytes(std::span(std::string_view("new"))), 0);
    }
    output.publish(written);
    return 0;
  });
}

bool is_new(const TempFolder& folder) {
  return fs::is_directory(folder / "out") && names_in(folder / "out") == Names{"0", "1", "2"};
}

bool is_as_before(const TempFolder& folder, Before before) {
  if (before == Before::kNothing) return !fs::exists(folder / "out");
  const Names expected = before == Before::kContent ? Names{"old"} : Names{};
  return names_in(folder / "out") == expected;
}

/// Failures of close after reading, of probing and of deleting leftovers are tolerated. An output
/// file that could not be opened is detected by its content.
bool may_go_unnoticed(Call call) {
  return call == Call::kClose || call == Call::kUnlinkat || call == Call::kOpenat;
}

void check_every_failure(Call call, int error_number, Before before) {
  for (int n = 1;; ++n) {
    CAPTURE(static_cast<int>(call));
    CAPTURE(static_cast<int>(before));
    CAPTURE(n);
    const TempFolder folder;
    prepare(folder, before);
    FaultySyscalls faults;
    faults.fail(call, n, error_number);
    const auto error = run(folder);
    const bool reached = faults.count(call) >= n;
    faults.heal();
    CHECK((error ? is_as_before(folder, before) : is_new(folder)));
    CHECK((error || !reached || may_go_unnoticed(call)));
    if (!reached) return;
  }
}

TEST_CASE("whichever call fails, there is the old state or the complete new one") {
  for (const Before before : {Before::kNothing, Before::kEmptyFolder, Before::kContent}) {
    for (int call = 0; call < testing::kCallKinds; ++call) {
      check_every_failure(static_cast<Call>(call), EIO, before);
    }
  }
}

TEST_CASE("whichever call fails, nothing hidden remains that could be deleted") {
  for (const Call call :
       {Call::kPwrite, Call::kFallocate, Call::kFsync, Call::kMkdir, Call::kRename}) {
    const TempFolder folder;
    FaultySyscalls faults;
    faults.fail(call, 1, EIO);
    CHECK(run(folder));
    CHECK(names_in(folder.path()).empty());
  }
}

TEST_CASE("no space for the folder, a file or its bytes is told as such") {
  for (const Call call : {Call::kMkdir, Call::kOpenat, Call::kFallocate, Call::kPwrite}) {
    const TempFolder folder;
    FaultySyscalls faults;
    faults.fail_all(call, ENOSPC);
    const auto error = run(folder);
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kNoSpace);
  }
}

TEST_CASE("when neither the sync nor its undoing works, the error says what is there") {
  const TempFolder folder;
  FaultySyscalls faults;
  faults.fail(Call::kFsync, kFiles + 2, EIO);  // the files, the folder, then the parent
  faults.fail(Call::kRename, 2, EIO);
  const auto error = run(folder);
  REQUIRE(error);
  CHECK(error->notes().size() == 1);
  CHECK(is_new(folder));
}

TEST_CASE("a file system that cannot exchange folders keeps the old one and says what to do") {
  for (const int reason : {EINVAL, ENOSYS}) {
    const TempFolder folder;
    prepare(folder, Before::kContent);
    FaultySyscalls faults;
    faults.fail_all(Call::kRenameExchange, reason);
    const auto error = run(folder);
    REQUIRE(error);
    CHECK(error->help_lines().size() == 1);
    CHECK(is_as_before(folder, Before::kContent));
  }
}

TEST_CASE("after one sync that failed no other is believed") {
  const TempFolder folder;
  OutputFolder output(OutputClaim(folder / "out", Existing::kRefuse), kRun, Leftover::kDiscard);
  output.create("0");
  output.sync();
  {
    FaultySyscalls faults;
    faults.fail(Call::kFsync, 1, EIO);
    CHECK_ERROR(kWriteFailed, (output.sync(), 0));
  }
  CHECK_ERROR(kWriteFailed, (output.sync(), 0));
  CHECK_ERROR(kWriteFailed, (output.publish({}), 0));
  CHECK_FALSE(fs::exists(folder / "out"));
}

TEST_CASE("old content that cannot be deleted is told, not an error") {
  const TempFolder folder;
  prepare(folder, Before::kContent);
  {
    OutputFolder output(OutputClaim(folder / "out", Existing::kReplace), kRun, Leftover::kDiscard);
    output.create("0");
    FaultySyscalls faults;
    faults.fail_all(Call::kUnlinkat, EACCES);
    CHECK(output.publish(std::vector<WrittenFile>{{"0", 0}}) ==
          hidden_replaced(output.claim().place(), kRun));
  }
  CHECK(names_in(folder / "out") == Names{"0"});
}

TEST_CASE("old content that may not be deleted is refused before anything is written") {
  const TempFolder folder;
  prepare(folder, Before::kContent);
  const auto before = names_in(folder / "out");
  FaultySyscalls faults;
  faults.fail_all(Call::kFaccessat, EACCES);
  CHECK_ERROR(kWriteFailed, OutputFolder(OutputClaim(folder / "out", Existing::kReplace), kRun,
                                         Leftover::kDiscard));
  CHECK(names_in(folder / "out") == before);
  CHECK(names_in(folder.path()) == Names{"out"});
}

TEST_CASE("a file system without sync of folders is no reason to fail") {
  const TempFolder folder;
  FaultySyscalls faults;
  faults.fail(Call::kFsync, kFiles + 1, EINVAL);
  CHECK(!run(folder));
  CHECK(is_new(folder));
}

/// Has the system show every folder from an overlay, which gives this answer to a rename of one
/// onto a hidden folder, during its lifetime; 0: that of the file system.
class Overlay {
 public:
  explicit Overlay(int answer) : scope_(table()) { given() = answer; }

 private:
  static int& given() {
    static int answer = 0;
    return answer;
  }
  static int statfs(const char* path, struct statfs* found) {
    const int result = real_syscalls().statfs(path, found);
    found->f_type = 0x794c7630;  // linux/magic.h
    return result;
  }
  static int rename(const char* from, const char* to) {
    const bool is_hidden = fs::path(to).filename().string().starts_with('.');
    if (given() == 0 || !is_hidden) return real_syscalls().rename(from, to);
    errno = given();
    return -1;
  }
  static Syscalls table() {
    Syscalls calls = real_syscalls();
    calls.statfs = statfs;
    calls.rename = rename;
    return calls;
  }

  ScopedSyscalls scope_;
};

TEST_CASE("content in a lower layer of an overlay is refused before any work, other is replaced") {
  const TempFolder folder;
  prepare(folder, Before::kContent);
  const Names names{"out"};
  {
    const Overlay lower(EXDEV);
    const auto error = run(folder);
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kWriteFailed);
    CHECK(error->message().find("overlay") != std::string::npos);
    CHECK(names_in(folder.path()) == names);
  }
  const Overlay upper(0);
  CHECK(names_in(folder / "out") == Names{"old"});
  CHECK_FALSE(run(folder));
  CHECK(names_in(folder / "out").size() == kFiles);
  CHECK(names_in(folder.path()) == names);
}

}  // namespace
}  // namespace shardtool::store
