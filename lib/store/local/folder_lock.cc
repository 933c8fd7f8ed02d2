#include "lib/store/local/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "lib/store/local/failure.h"
#include "lib/store/local/syscalls.h"

namespace shardtool::store {
namespace {

File locked(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  File file(syscalls().openat(AT_FDCWD, path.c_str(), kFlags, 0666), path);
  if (!file.is_open()) throw write_failure("create the lock", path, errno);
  if (::flock(file.fd(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno != EWOULDBLOCK) throw write_failure("lock", path, errno);
  throw Error(ErrorCode::kOutputLocked, "another run writes the output that this lock is for")
      .at({path, 0, 0, {}})
      .help("wait until it has ended, or choose another output");
}

}  // namespace

FolderLock::FolderLock(const std::string& path) : file_(locked(path)) {
  // The last holder deletes the file, even if it is already open here, and a lock on a deleted file
  // excludes no other run.
  while (!is_at(path, identity(file_))) file_ = locked(path);
}

FolderLock::~FolderLock() {
  if (file_.is_open()) syscalls().unlinkat(AT_FDCWD, file_.path().c_str(), 0);
}

}  // namespace shardtool::store
