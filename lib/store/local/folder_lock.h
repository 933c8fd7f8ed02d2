#pragma once

#include <string>

#include "lib/store/local/file.h"

namespace shardtool::store {

/// Number of holders that a lock may have at the same time.
enum class LockKind { kExclusive, kShared };

/// Holds a flock on a file that it creates. The last holder deletes the file. The system releases
/// the lock of a killed process; the remaining file does no harm.
class FolderLock {
 public:
  /// Throws kOutputLocked if another process, or another FolderLock, holds a lock that excludes
  /// this one. A shared lock waits a second first: holders that end have it exclusively for a
  /// moment.
  explicit FolderLock(const std::string& path, LockKind kind = LockKind::kExclusive);
  ~FolderLock();
  FolderLock(FolderLock&&) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  File file_;
};

/// True if a process holds a lock on this file. Tries the lock for a moment, in which an exclusive
/// lock fails. Throws kWriteFailed.
bool is_locked(const std::string& path);

}  // namespace shardtool::store
