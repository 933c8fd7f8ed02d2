#pragma once

#include <string>

#include "lib/store/local/file.h"

namespace shardtool::store {

/// Holds an exclusive flock on a file that it creates, and deletes the file on destruction. The
/// system releases the lock of a killed process; the remaining file does no harm.
class FolderLock {
 public:
  /// Throws kOutputLocked if another process, or another FolderLock, holds the lock.
  explicit FolderLock(const std::string& path);
  ~FolderLock();
  FolderLock(FolderLock&&) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  File file_;
};

}  // namespace shardtool::store
