#include "lib/store/local/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "lib/store/local/failure.h"
#include "lib/store/local/syscalls.h"

namespace shardtool::store {
namespace {

constexpr std::chrono::milliseconds kPause{20};
constexpr int kPauses = 50;  // a second

/// Returns false, with errno, if the lock is not available.
bool lock(const File& file, LockKind kind) {
  const bool waits = kind == LockKind::kShared;
  const int operation = (waits ? LOCK_SH : LOCK_EX) | LOCK_NB;
  for (int pause = 0;; ++pause) {
    if (::flock(file.fd(), operation) == 0) return true;
    if (errno != EWOULDBLOCK || !waits || pause == kPauses) return false;
    std::this_thread::sleep_for(kPause);
  }
}

File locked(const std::string& path, LockKind kind) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  File file(syscalls().openat(AT_FDCWD, path.c_str(), kFlags, 0666), path);
  if (!file.is_open()) throw write_failure("create the lock", path, errno);
  if (lock(file, kind)) return file;
  if (errno != EWOULDBLOCK) throw write_failure("lock", path, errno);
  throw Error(ErrorCode::kOutputLocked,
              "another process is writing this output, and holds its lock")
      .at({path, 0, 0, {}})
      .help("wait until it has ended, or choose another output");
}

}  // namespace

FolderLock::FolderLock(const std::string& path, LockKind kind) : file_(locked(path, kind)) {
  // The last holder deletes the file, even if it is already open here, and a lock on a deleted file
  // excludes no other run.
  while (!is_at(path, identity(file_))) file_ = locked(path, kind);
}

FolderLock::~FolderLock() {
  if (!file_.is_open() || !lock(file_, LockKind::kExclusive)) return;  // others hold it
  syscalls().unlinkat(AT_FDCWD, file_.path().c_str(), 0);
}

bool is_locked(const std::string& path) {
  const File file(syscalls().openat(AT_FDCWD, path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0),
                  path);
  if (!file.is_open() && errno == ENOENT) return false;
  if (!file.is_open()) throw write_failure("open the lock", path, errno);
  if (lock(file, LockKind::kExclusive)) return false;
  if (errno != EWOULDBLOCK) throw write_failure("lock", path, errno);
  return true;
}

}  // namespace shardtool::store
