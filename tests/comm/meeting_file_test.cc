#include "lib/comm/tcp/meeting_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>

#include "lib/store/local/syscalls.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

const MeetingNote kNote{"0123456789abcdef", {{"127.0.0.1", 9}, {"::1", 9}}};

/// Reason why the meeting file at the path is rejected; empty if it is accepted.
std::string refusal_of(const std::string& path) {
  const FoundNote found = read_meeting_file(path);
  CHECK(found.note.has_value() == found.refusal.empty());
  return found.refusal;
}

TEST_CASE("a meeting file says its note to its owner alone, and goes at the end") {
  const TempFolder folder;
  const std::string path = folder / "meeting";
  {
    const MeetingFile file(path, kNote);
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600U);
    const FoundNote found = read_meeting_file(path);
    REQUIRE(found.note);
    CHECK(found.note->secret == kNote.secret);
    CHECK(found.note->addresses == kNote.addresses);
  }
  CHECK(fs::is_empty(folder.path()));
  const FoundNote none = read_meeting_file(path);
  CHECK_FALSE(none.note);
  CHECK(none.refusal.empty());
}

TEST_CASE("a file that others may use, a link, a pipe and a folder are not believed") {
  const TempFolder folder;
  const MeetingFile file(folder / "meeting", kNote);
  for (const mode_t mode : {0640U, 0620U, 0604U, 0602U}) {
    CAPTURE(mode);
    REQUIRE(::chmod((folder / "meeting").c_str(), mode) == 0);
    CHECK(refusal_of(folder / "meeting").starts_with("others may use it: its mode is 06"));
  }
  REQUIRE(::chmod((folder / "meeting").c_str(), 0600) == 0);
  fs::create_symlink(folder / "meeting", folder / "link");
  CHECK(refusal_of(folder / "link") == "it is a symbolic link");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(refusal_of(folder / "pipe") == "it is not a regular file");
  fs::create_directory(folder / "folder");
  CHECK(refusal_of(folder / "folder") == "it is not a regular file");
}

TEST_CASE("a file of another user is not believed") {
  if (::geteuid() != 0) {
    std::cout << "SKIPPED: only root can give a file away\n";
    return;
  }
  const TempFolder folder;
  const MeetingFile file(folder / "meeting", kNote);
  constexpr uid_t kStranger = 4242;
  REQUIRE(::chown((folder / "meeting").c_str(), kStranger, kStranger) == 0);
  CHECK(refusal_of(folder / "meeting") == "it belongs to user 4242, expected 0");
}

TEST_CASE("nobody meets in a folder where everybody may replace files") {
  const TempFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  CHECK_ERROR(kUsage, MeetingFile(folder / "meeting", kNote));
  CHECK_ERROR(kUsage, read_meeting_file(folder / "meeting"));
  REQUIRE(::chmod(folder.path().c_str(), 01777) == 0);
  const MeetingFile file(folder / "meeting", kNote);
  CHECK(refusal_of(folder / "meeting").empty());
}

TEST_CASE("a meeting file that cannot be written leaves no secret behind") {
  const TempFolder folder;
  store::Syscalls full = store::real_syscalls();
  full.pwrite = [](int fd, const void* from, size_t, off_t offset) -> ssize_t {
    if (offset == 0) return ::pwrite(fd, from, 1, offset);
    errno = ENOSPC;
    return -1;
  };
  const store::ScopedSyscalls scope(full);
  CHECK_ERROR(kNoSpace, MeetingFile(folder / "meeting", kNote));
  CHECK(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace shardtool::comm
