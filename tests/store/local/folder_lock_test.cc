#include "lib/store/local/folder_lock.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "lib/store/local/tree.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::store {
namespace {

using test::TempFolder;

/// Exit status of a child process that tries to lock: 0 locked, 1 refused.
int child_takes(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    const auto error = testing::error_of([&] { return FolderLock(path), 0; });
    _exit(error ? 1 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WEXITSTATUS(status);
}

TEST_CASE("one process excludes another, until it lets go") {
  const TempFolder folder;
  {
    const FolderLock lock(folder / "lock");
    CHECK(child_takes(folder / "lock") == 1);
    CHECK_ERROR(kOutputLocked, (FolderLock(folder / "lock"), 0));
  }
  CHECK(child_takes(folder / "lock") == 0);
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("the lock file of a killed process does no harm") {
  const TempFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    const FolderLock lock(folder / "lock");
    _exit(0);  // no destructor: the file remains
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(std::filesystem::exists(folder / "lock"));
  const FolderLock lock(folder / "lock");
  CHECK_ERROR(kOutputLocked, (FolderLock(folder / "lock"), 0));
}

TEST_CASE("a lock in a folder that is not there, or on a link, cannot be had") {
  const TempFolder folder;
  std::filesystem::create_symlink("target", folder / "link");
  CHECK_ERROR(kWriteFailed, (FolderLock(folder / "absent/lock"), 0));
  CHECK_ERROR(kWriteFailed, (FolderLock(folder / "link"), 0));
  CHECK(!std::filesystem::exists(folder / "target"));
}

TEST_CASE("shared holders exclude an exclusive one, and the last of them deletes the file") {
  const TempFolder folder;
  const std::string path = folder / "lock";
  {
    const FolderLock one(path, LockKind::kShared);
    {
      const FolderLock other(path, LockKind::kShared);
      CHECK_ERROR(kOutputLocked, (FolderLock(path), 0));
    }
    CHECK(std::filesystem::exists(path));
    CHECK_ERROR(kOutputLocked, (FolderLock(path), 0));
  }
  CHECK(names_in(folder.path()).empty());
  const FolderLock exclusive(path);
  CHECK_ERROR(kOutputLocked, (FolderLock(path, LockKind::kShared), 0));
}

TEST_CASE("a lock is seen while it is held, of either kind, and the look leaves it alone") {
  const TempFolder folder;
  CHECK_FALSE(is_locked(folder / "lock"));
  CHECK(names_in(folder.path()).empty());
  for (const LockKind kind : {LockKind::kExclusive, LockKind::kShared}) {
    const FolderLock lock(folder / "lock", kind);
    CHECK(is_locked(folder / "lock"));
    CHECK(is_locked(folder / "lock"));
  }
  folder.write("lock", "");  // of a killed process
  CHECK_FALSE(is_locked(folder / "lock"));
  CHECK(std::filesystem::exists(folder / "lock"));
}

}  // namespace
}  // namespace shardtool::store
